"""The plan for a cluster: its simulation where the time is known, and the page."""

from dataclasses import replace

import numpy as np
import pytest

from examples.benchmarks.cluster_plan import __main__ as plan
from examples.benchmarks.cluster_plan.measured import Measured, MeasuredPass
from examples.benchmarks.cluster_plan.simulated import Cluster, Work, simulated
from pymc_austerity.distributed.passes import _size_of_task

IDEAL = Cluster(
    n_workers=4, storage=1e15, reader=1e15, network=1e15, scheduling=0.0, slow_share=0.0,
    spread=0.0, hours_between_losses=1e12,
)  # fmt: skip
WORK = Work(1_280, read_bytes=5e6, evaluation=0.1, result_bytes=1e3, folding=0.0, sent_bytes=0.0)


def outcome(work=WORK, seed=1, **settings):
    return simulated(work, replace(IDEAL, **settings), np.random.default_rng(seed))


class TestSimulation:
    def test_evaluation_is_shared_among_workers(self):
        found = outcome()
        assert found.seconds == pytest.approx(1_280 * 0.1 / 4)
        assert found.busy == pytest.approx(1.0)
        assert outcome(n_workers=8).seconds == pytest.approx(found.seconds / 2)

    def test_storage_is_the_limit_of_many_readers(self):
        found = outcome(storage=1e7)  # two pieces a second
        assert found.seconds == pytest.approx(1_280 / 2, rel=0.03)
        assert outcome(storage=1e7, n_workers=8).seconds == pytest.approx(1_280 / 2, rel=0.03)

    def test_one_reader_has_a_limit_of_its_own(self):
        found = outcome(reader=1e7)  # half a second for a piece, of which the first one waits
        assert found.seconds == pytest.approx(1_280 * 0.5 / 4, rel=0.02)

    def test_results_are_taken_in_one_by_one(self):
        expected = 64 * 0.1 + 1_280 * 0.05  # after the first task
        assert outcome(replace(WORK, folding=0.05)).seconds == pytest.approx(expected)
        assert outcome(network=20e3).seconds == pytest.approx(expected)

    def test_the_scheduler_hands_out_one_by_one(self):
        n_tasks, n_left = 0, 1_280
        while n_left:
            n_tasks, n_left = n_tasks + 1, n_left - _size_of_task(n_left, 4)
        assert outcome(scheduling=2.0).seconds == pytest.approx(n_tasks * 2.0, rel=0.05)

    def test_functions_are_sent_first(self):
        found = outcome(replace(WORK, sent_bytes=1e9), network=1e9)
        assert found.seconds == pytest.approx(outcome().seconds + 3.0, rel=1e-3)

    def test_lost_workers_cost_what_they_did_and_come_back(self):
        found = [outcome(seed=k, hours_between_losses=0.01, seconds_away=10.0) for k in range(20)]
        n_lost = np.mean([each.n_lost for each in found])
        assert n_lost == pytest.approx(128 / 36.0, rel=0.5)  # seconds of work to seconds of a life
        expected = outcome().seconds + n_lost * 10.0 / 4
        assert np.mean([each.seconds for each in found]) == pytest.approx(expected, rel=0.2)

    def test_a_straggler_delays_the_end(self):
        seconds = outcome(slow_share=1.0, slowdown=3.0).seconds
        assert seconds == pytest.approx(3.0 * outcome().seconds)


def test_the_page_has_every_table_and_follows_the_measurements():
    passes = [
        MeasuredPass(name, 62, evaluation, 0.01, 0.1, 62_000, 30_000, by_piece)
        for name, evaluation, by_piece in (("Hessian", 4.0, 0), ("rows", 6.0, 4_000))
    ]
    pools = {str(n): (900, 10**5) for n in (plan.N_ROWS, plan.N_CHECKED)}
    found = Measured(4_000_000, 500, 1_000, 200_000, 30.0, passes, pools)
    page = plan.page(found, {"date": "today", "revision": "none"})
    assert "| Hessian | 1.02 |" in page
    assert "| reading alone | 14 | 3 | 1 |" in page  # 1.62 TB
    assert page.count("\n| --- |") == 5
    slower = replace(found, passes=[replace(each, evaluation=60.0) for each in passes])
    cluster = Cluster(storage=1e12)
    assert plan.minutes(slower, cluster) > 5.0 * plan.minutes(found, cluster)
