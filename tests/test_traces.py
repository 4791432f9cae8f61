"""PyTensor's notes of where operations were made: left out in set-up, and only there."""

import pytensor
import pytensor.tensor as pt

from pymc_austerity._pymc import without_traces


def has_trace(variable):
    return bool(getattr(variable.tag, "trace", None))


@without_traces()
def made(depth):
    return pt.exp(pt.scalar("x")) if depth == 0 else made(depth - 1)


def test_are_left_out_at_every_depth_and_come_back():
    before = pytensor.config.traceback__limit
    assert before > 0
    assert not has_trace(made(3))
    assert pytensor.config.traceback__limit == before
    assert has_trace(pt.exp(pt.scalar("x")))
