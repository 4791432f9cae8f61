"""Short chains at the end of set-up: what they show, and what that says beside NUTS."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.diagnostics.convergence import effective_draws, r_hat_of_entries
from pymc_austerity.setup.setup_progress import collection_paused
from pymc_austerity.step_methods.expected_time import IN_TAILS, TRANSITIONS, CostOfNUTS
from pymc_austerity.step_methods.few_rows import FewRowsStep
from pymc_austerity.step_methods.grouped_mh import GroupedStep
from pymc_austerity.step_methods.interrupts import restore_interrupts
from pymc_austerity.time_limit import counted

_N_CHAINS = 4
_FIRST_STEPS = 3
"""Steps that compile what is left to compile, before time counts."""
FEWEST_STEPS = 40
"""With fewer steps of a chain, nothing is known but the time of a step."""
_PATIENCE = 10
"""Times the given time in which a chain must have made these."""
_FEWEST_MOVES = 3
"""Points that a chain visits in its second half, at least."""
_LARGEST_R_HAT = 2.0
"""Chains that differ by more have not forgotten where they began: 200 steps with ten effective
draws each give less in the worst of 1,000 entries."""
_FEWEST_EFFECTIVE = 20
"""Effective draws of all chains: of so few draws, five are the fewest that can be seen."""
_MOST_ENTRIES = 2_000
_SEED = 20_140_622

_PROBE_SHARE, _PROBE_SECONDS, _PROBE_SHARE_OF_NUTS = 0.1, 0.25, 0.1
"""Time of the short chains as a share of set-up and at least in seconds. Where they speak against a
step method, longer ones take a share of a run of NUTS."""
_PROBE_SHARE_OF_COMPILATION, WATCHING_SHARE = 0.5, 0.25
"""Time of short chains as a share of what NUTS takes to compile, where they leave a doubt; and that
of longer ones, and of a NUTS that is watched, as a share of the run that would follow."""
_LONGER_CHAINS = 1.5
"""Times the length of chains from which longer ones show more."""
_PROBE_STEPS, _LONGEST_PROBE = (100, 400), 1_600
"""Of a chain: few, and many where few leave a doubt; and where chains may stay long in tails."""
_MARGIN, _NOT_NORMAL, _OF_LEVELS = 3.0, 5.0, 15.0
"""Times as long as NUTS is expected to take for an effective draw: what is expected of NUTS holds
where it has no difficulties, and short chains still tune. It has some where a normal approximation
is poor, and in hierarchies: of twenty of its draws, none to two are effective for the worst
entry."""
_OF_TRANSITIONS, _OF_THOSE_OF_LEVELS = 1.0, 5.0
"""The same where transitions of NUTS were made, which show some of its difficulties."""
MIXES, _OF_STUCK = 0.02, 4.0
"""Share of effective draws with which a NUTS that was watched for 200 draws may be stuck; and
transitions of it which a step of something that mixes may take then."""
LONGER = "an effective draw is expected to take longer without it"
_CLEARLY_ENOUGH = 0.1
"""Effective draws of a draw with which no longer chains, and no other step method, are tried."""
_FAR_FASTER = 20.0
"""Times as fast as NUTS, beside which longer chains change nothing: a transition of it where these
may stay in tails, what an effective draw of it may take where few draws were effective."""
_ENOUGH, _MOST_STEPS, _SHARE_OF_TRANSITION = 0.2, 20, 0.5
"""Effective draws of a recorded one that are aimed at; and the transitions between two of these: at
most how many, and how much of the time of a transition of NUTS."""
_OF_TESTS = 3.0
"""Times as fast as exact decisions that a sequential test has to be, as some of its are wrong."""
_MOST_ROWS, _MOST_SPREAD = 0.25, 1.0
"""Share of the rows that a sequential test may read where the expansion leaves more nats open.
There short chains can look well where long ones are not, as for logarithms of many scales."""
_OUT_OF_REACH = 2.5
"""Times what a NUTS that was watched takes, from which longer chains do not lead back."""


class Probe(NamedTuple):
    """What short chains showed.

    Attributes
    ----------
    wrong : str
        Why the step method should not be used, as a clause; empty if there is no reason.
    seconds_per_effective_draw : float
        Of the entry that mixes worst; that of a step where too little was seen.
    share_effective : float
        Effective draws of a draw; NaN where too little was seen.
    share_of_rows : float
        Rows that a step reads, as a share of all, on average.
    n_steps : int
        Of the shortest chain.
    """

    wrong: str
    seconds_per_effective_draw: float
    share_effective: float
    share_of_rows: float = 0.0
    n_steps: int = 0

    @property
    def is_vague(self) -> bool:
        """Whether chains may mix worse than they show: few of their draws were effective."""
        return self.share_effective * _N_CHAINS * (self.n_steps // 2) < _FEWEST_EFFECTIVE

    @property
    def seconds_per_step(self) -> float:
        """Processor time; NaN where chains showed that the step method should not be used."""
        known = not np.isnan(self.share_effective)
        return self.seconds_per_effective_draw * (self.share_effective if known else 1.0)

    @property
    def seconds(self) -> float:
        """Processor time of the chains."""
        return self.seconds_per_step * _N_CHAINS * self.n_steps


NOTHING_KNOWN = Probe("", np.nan, np.nan)


def probe(step: Any, point: dict[str, NDArray], most_seconds: float, n_steps: int) -> Probe:
    """Let a step method make short chains while it tunes, from dispersed starts.

    Parameters
    ----------
    step : step method
        It begins its own chains anew when ``pm.sample`` runs.
    point : dict
        The model's initial point, from which chains disperse.
    most_seconds : float
        Processor time of the chains, more where they have made few steps.
    n_steps : int
        Steps of a chain, at most.
    """
    names = [variable.name for variable in step.vars]
    first, *others = np.random.default_rng(_SEED).spawn(1 + _N_CHAINS)
    try:
        with collection_paused():  # what they need is compiled
            list(_chain(step, point, names, first, np.inf, _FIRST_STEPS))
        started = counted()
        seconds = most_seconds / _N_CHAINS
        chains = [list(_chain(step, point, names, rng, seconds, n_steps)) for rng in others]
    finally:  # as if no chain had begun
        step.reset_tuning()
        restore_interrupts()
    per_step = (counted() - started) / sum(map(len, chains))
    n_made = min(map(len, chains))
    cost = float(np.mean([share for chain in chains for _, share in chain])), n_made
    n_kept = n_made // 2
    if n_kept < FEWEST_STEPS // 2:
        return Probe("", per_step, np.nan, *cost)
    kept = np.stack([[place for place, _ in chain[-n_kept:]] for chain in chains])
    n_points = min(len(np.unique(chain, axis=0)) for chain in kept)
    if n_points < _FEWEST_MOVES:
        return Probe("short chains from dispersed starts did not move", np.inf, 0.0, *cost)
    ends = np.cumsum([_seen(point[name]).size for name in names])[:-1]
    if any(_worst(own) > _LARGEST_R_HAT for own in np.split(r_hat_of_entries(kept), ends)):
        return Probe("short chains did not forget where they began", np.inf, 0.0, *cost)
    n_effective = min(effective_draws(own, IN_TAILS) for own in np.split(kept, ends, axis=2))
    share = n_effective / kept[..., 0].size
    return Probe("", per_step / share, share, *cost)


def _seen(value: NDArray) -> NDArray:
    """Entries of a variable that are looked at, evenly spread where there are many."""
    entries = np.ravel(value)
    return entries[:: -(-entries.size // _MOST_ENTRIES) or 1]


def _worst(r_hat: NDArray[np.float64]) -> float:
    """Of a variable; a few of many levels may stay in a tail for some steps."""
    return float(np.quantile(r_hat, 1.0 - IN_TAILS, method="higher"))


def _chain(
    step: Any,
    point: dict[str, NDArray],
    names: list[str],
    rng: np.random.Generator,
    seconds: float,
    n_steps: int,
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Where each step leads, and the share of the rows that it reads."""
    step.set_rng(rng)
    current = dict(point)
    started = counted()
    for n_made in range(1, n_steps + 1):
        current, statistics = step.step(current)
        place = np.concatenate([_seen(current[name]) for name in names])
        yield place, sum(stats["data_fraction"] for stats in statistics)
        spent = counted() - started
        if spent > (seconds if n_made >= FEWEST_STEPS else _PATIENCE * seconds):
            return


# ------------------------------------------------------------------ what they say


def by_time(tried: tuple[Any, Probe]) -> tuple[bool, float]:
    """Those of which something is known first, the fastest of these before the others."""
    step, found = tried
    times = _OF_TESTS if _is_test(step) else 1.0
    return math.isnan(found.share_effective), times * found.seconds_per_effective_draw


def is_settled(step: Any, found: Probe, costs: Sequence[CostOfNUTS]) -> bool:
    """Whether no longer chains, and no other step method, need to be tried."""
    return found.share_effective >= _CLEARLY_ENOUGH and not reason_against(step, found, costs)


def glimpsed(step: Any, point: dict[str, NDArray], costs: Sequence[CostOfNUTS]) -> Probe:
    """What chains show in a small part of the time of set-up."""
    few, many = _PROBE_STEPS
    seconds, began = _usual_seconds(step), counted()
    found = probe(step, point, seconds, few)
    spent = counted() - began  # more than was given, where few steps take it
    longer = _PROBE_SHARE_OF_COMPILATION * costs[0].compilation  # of NUTS, which comes next
    is_much = longer > max(_LONGER_CHAINS * seconds, spent)
    if is_much and found.n_steps < few and leaves_a_doubt(step, found, costs):
        seconds, found = longer, probe(step, point, longer, few)
    is_enough = found.n_steps < few or is_settled(step, found, costs)
    return found if is_enough else probe(step, point, seconds, many)


def looked_at(
    step: Any,
    found: Probe,
    point: dict[str, NDArray],
    costs: Sequence[CostOfNUTS],
    most_seconds: float,
) -> Probe:
    """What longer chains show, where those before them left a doubt."""
    usual = _usual_seconds(step)
    own = max(WATCHING_SHARE * seconds_of_run(found, costs), usual)
    ends = counted() + most_seconds
    longest = min(_PROBE_SHARE_OF_NUTS * costs[0].of_run, own, most_seconds)
    watched = costs[0].per_draw / max(costs[0].share_effective, MIXES)  # NaN if it was not
    if longest < usual or found.seconds_per_effective_draw > _OUT_OF_REACH * watched:
        return found
    if math.isnan(found.share_effective):
        found = probe(step, point, longest, FEWEST_STEPS)
        if not found.wrong:
            return found
    for n_steps in _PROBE_STEPS:
        if found.n_steps < n_steps and leaves_a_doubt(step, found, costs):
            if _LONGER_CHAINS * found.seconds > longest:
                return found
            n_before, found = found.n_steps, probe(step, point, longest, n_steps)
            longest = min(longest, ends - counted())
            if longest < usual or found.n_steps < _LONGER_CHAINS * n_before:
                return found
    if may_stay(step, found, costs) and not reason_against(step, found, costs):
        found = probe(step, point, longest, _LONGEST_PROBE)
    return found


def seconds_of_run(found: Probe, costs: Sequence[CostOfNUTS]) -> float:
    """What a run of as many transitions as that of NUTS takes, as far as it is known."""
    if not math.isfinite(found.seconds_per_step):
        return costs[0].of_run
    n_between = 1 if found.is_vague else steps_per_draw(found, costs)
    return TRANSITIONS * found.seconds_per_step * n_between


def _usual_seconds(step: Any) -> float:
    return max(_PROBE_SHARE * step.setup_seconds, _PROBE_SECONDS)


def leaves_a_doubt(step: Any, found: Probe, costs: Sequence[CostOfNUTS]) -> bool:
    """Whether longer chains, or a try of NUTS, may change the choice."""
    if _reads_many_rows(step, found):
        return False
    if is_settled(step, found, costs):
        times = _longest(step, costs) / found.seconds_per_effective_draw
        return found.is_vague and times < _FAR_FASTER
    is_unknown = math.isnan(found.share_effective)
    return is_unknown or found.is_vague or bool(reason_against(step, found, costs))


def may_stay(step: Any, found: Probe, costs: Sequence[CostOfNUTS]) -> bool:
    """Whether chains may stay so long in tails that more steps change the choice.

    In a posterior that is not normal, a few hundred steps look better than thousands.
    """
    is_low = isinstance(step, FewRowsStep) and found.share_effective < _CLEARLY_ENOUGH
    is_near = found.seconds_per_effective_draw * _FAR_FASTER > costs[0].per_draw
    return is_low and is_near


def reason_against(step: Any, found: Probe, costs: Sequence[CostOfNUTS]) -> str:
    """What short chains say against a step method; empty if nothing."""
    if _reads_many_rows(step, found):
        return f"a sequential test reads {found.share_of_rows:.0%} of the rows"
    if found.wrong:
        return found.wrong
    if costs[0].share_effective <= MIXES and mixes_in_time(found, costs[0]):
        return ""
    return "" if found.seconds_per_effective_draw < _longest(step, costs) else LONGER


def _longest(step: Any, costs: Sequence[CostOfNUTS]) -> float:
    """What NUTS may take for an effective draw at most."""
    share = costs[0].share_effective
    if math.isnan(share):
        return max(_seconds_of_nuts(step, cost) for cost in costs)
    return costs[0].per_draw / max(share, MIXES)


def mixes_in_time(found: Probe, cost: CostOfNUTS) -> bool:
    """Whether a step method would be better than a NUTS that is stuck, though it is slower."""
    return found.share_effective > MIXES and found.seconds_per_step < _OF_STUCK * cost.per_draw


def _reads_many_rows(step: Any, found: Probe) -> bool:
    """Whether a sequential test reads many rows beside a poor expansion."""
    if not (_is_test(step) and found.share_of_rows > _MOST_ROWS):
        return False
    return not step.spread_of_residuals <= _MOST_SPREAD


def _is_test(step: Any) -> bool:
    """Whether decisions are sequential tests, of which some are wrong."""
    return isinstance(step, FewRowsStep) and isinstance(step.target.sampling, StratifiedSampling)


def _seconds_of_nuts(step: Any, cost: CostOfNUTS) -> float:
    """What NUTS may take for an effective draw in a posterior like that of a step method."""
    if isinstance(step, GroupedStep):
        return (_OF_THOSE_OF_LEVELS if cost.is_measured else _OF_LEVELS) * cost.per_draw
    is_far = isinstance(step, FewRowsStep) and step.target.surrogate is not None
    margin = _NOT_NORMAL if is_far else _MARGIN
    return (_OF_TRANSITIONS if cost.is_measured else margin) * cost.per_draw


def steps_per_draw(found: Probe, costs: Sequence[CostOfNUTS]) -> int:
    """Transitions between recorded draws, more than one where these would be much alike.

    A user of NUTS records what it takes for some hundred effective draws: as many draws should do,
    in less time.
    """
    if not found.share_effective > 0.0:
        return 1
    of_nuts = max(cost.per_draw for cost in costs)
    most = min(_MOST_STEPS, int(_SHARE_OF_TRANSITION * of_nuts / found.seconds_per_step))
    return max(1, min(int(_ENOUGH / found.share_effective), most))
