"""``AusterityMH()`` is never worse than ``pm.sample()``: what it chooses, and why."""

import logging
import time
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest

from pymc_austerity import (
    AusterityMH,
    AusterityWarning,
    DataError,
    GroupedMH,
    NotRowwiseError,
    SettingError,
)
from pymc_austerity.deciding.sampling import StratifiedSampling
from pymc_austerity.step_methods import by_default, expected_time, few_rows, short_chains
from pymc_austerity.step_methods.all_rows_nuts import AllRowsNUTS, PyMCSteps
from pymc_austerity.step_methods.expected_time import (
    CostOfNUTS,
    Size,
    TrialOfNUTS,
    expected_cost,
)
from pymc_austerity.step_methods.few_rows import FewRowsStep
from pymc_austerity.step_methods.grouped_mh import GroupedStep
from pymc_austerity.step_methods.short_chains import Probe, probe
from pymc_austerity.time_limit import SetupTooLongError
from tests import running
from tests.running import assert_same_draws, built
from tests.running import sample as run
from tests.step_methods.models import groups, normal_of, wide

pytestmark = pytest.mark.choice


@pytest.fixture
def plans(monkeypatch):
    """Set-up is tried however few rows there are, and may take its time."""
    monkeypatch.setattr(by_default, "_few_rows", lambda model: "")
    monkeypatch.setattr(by_default, "_time_for_setup", lambda model: 1_000.0)


def normal_model(n_rows: int) -> pm.Model:
    return normal_of(np.random.default_rng(1).normal(2.0, 1.0, size=n_rows), spread=10.0)


def centered_groups() -> pm.Model:
    with pm.Model() as model:
        effects = pm.Normal(
            "effects", pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0), shape=8
        )
        pm.Normal("y", effects, 10.0, observed=[28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    return model


def begin_chain(step, rng):
    """As PyMC 6 or PyMC 5 does."""
    if hasattr(step, "setup_chain"):
        step.setup_chain(rng, 10, 10)
    else:
        step.set_rng(rng)


def sample(model: pm.Model, **settings):
    step = built(model, **settings)
    return step, run(step, model, draws=150, tune=150, random_seed=1, quiet=False)


class TestNUTSIsTaken:
    def test_where_there_are_few_rows(self, caplog):
        caplog.set_level(logging.INFO, "pymc.austerity")
        step, idata = sample(normal_model(300))
        assert isinstance(step, AllRowsNUTS)
        assert isinstance(step, AusterityMH)
        assert "300 rows are too few" in caplog.text
        assert "300 rows are too few" in step.explain()
        assert abs(float(idata.posterior["mu"].mean()) - 2.0) < 0.3
        assert idata.sample_stats.attrs["sampler"] == "AllRowsNUTS"
        used, gradients = idata.sample_stats["n_rows_used"], idata.sample_stats["n_steps"]
        np.testing.assert_array_equal(used.values, 300 * gradients.values)

    def test_where_rows_depend_on_each_other(self, plans):
        y = np.random.default_rng(1).normal(size=60).cumsum()
        with pm.Model() as model:
            start = pm.Normal.dist(0.0, 10.0)
            pm.AR("y", [pm.Normal("rho", 0.9, 0.2)], sigma=1.0, init_dist=start, observed=y)
        step, _ = sample(model)
        assert isinstance(step, AllRowsNUTS)

    @pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
    def test_where_a_test_reads_many_of_the_rows(self, plans, monkeypatch):
        """Short chains of it look well."""
        many = lambda *args: Probe("", 1e-9, 1.0, 0.5)  # noqa: E731
        monkeypatch.setattr(short_chains, "probe", many)
        monkeypatch.setattr("pymc_austerity.setup.choose.together", lambda about, **_: None)
        monkeypatch.setattr(few_rows, "spread_of_residuals", lambda *args: 2.0)
        step, _ = sample(wide())
        assert isinstance(step, AllRowsNUTS)
        assert "a sequential test reads 50% of the rows" in step.explain()
        monkeypatch.setattr(few_rows, "spread_of_residuals", lambda *args: 0.5)
        assert type(built(wide())) is FewRowsStep

    def test_where_rows_are_few_for_the_dimensions(self, plans):
        rng = np.random.default_rng(1)
        with pm.Model() as model:
            pm.Normal(
                "y", rng.normal(size=(100, 11)) @ pm.Normal("b", shape=11), observed=np.ones(100)
            )
        step, _ = sample(model)
        assert step.reason == "100 rows are few for 11 dimensions"

    def test_where_nothing_is_observed(self):
        with pm.Model() as model:
            pm.Normal("x")
            pm.Deterministic("twice", 2.0 * model["x"])
        step, run = sample(model)
        assert step.reason == "no variable is observed"
        assert "Cost: gradients of the whole log-density;" in step.summary
        assert run.sample_stats.attrs["free_variables"] == "x"

    def test_where_the_likelihood_is_a_potential(self):
        with pm.Model() as model:
            x = pm.Normal("x", shape=3)
            pm.Potential("bound", pm.math.switch(x.sum() < 9.0, 0.0, -np.inf))
            pm.Potential("loglike", -((x[0] - np.arange(5.0)) ** 2))
        assert "likelihood=['loglike']" in built(model).reason

    def test_where_latent_variables_have_one_entry_per_row(self, plans):
        y = np.random.default_rng(1).poisson(3.0, size=50)
        with pm.Model() as model:
            z = pm.Normal("z", 0.0, pm.HalfNormal("s"), shape=50)
            pm.Poisson("y", pm.math.exp(1.0 + pm.math.sin(z)), observed=y)
        step, _ = sample(model)
        assert isinstance(step, AllRowsNUTS | GroupedMH)

    def test_where_there_is_no_surrogate(self, plans):
        y = np.random.default_rng(1).normal(size=60)
        with pm.Model() as model:
            pm.Normal("y", abs(pm.Normal("mu")) + 1.0, 1.0, observed=y + 3.0)
        with pytest.warns(AusterityWarning, match="2 modes"):
            step = built(model)
        assert isinstance(step, AllRowsNUTS)
        assert "modes" in step.reason

    @pytest.mark.filterwarnings("ignore:Scan return signature:DeprecationWarning")  # PyTensor's own
    def test_where_an_operation_has_no_second_derivative(self, plans):
        y = np.random.default_rng(1).negative_binomial(2, 0.4, size=400) + 3
        with pm.Model() as model:
            shapes = {"mu": pm.Exponential("mu", 0.2), "alpha": pm.Exponential("alpha", 1.0)}
            counts = pm.NegativeBinomial.dist(**shapes)
            pm.Truncated("y", counts, lower=3, observed=y)
        assert "betainc, of the likelihood, has no second derivative" in built(model).reason

    def test_where_short_chains_do_not_move(self, plans, monkeypatch):
        stuck = Probe("short chains from dispersed starts did not move", np.inf, 0.0)
        monkeypatch.setattr(short_chains, "probe", lambda *args: stuck)
        step, _ = sample(normal_model(300))
        assert step.reason == stuck.wrong

    def test_where_set_up_takes_too_long(self, plans, monkeypatch):
        monkeypatch.setattr(by_default, "_time_for_setup", lambda model: 0.0)
        step, _ = sample(normal_model(300))
        assert step.reason == "set-up took longer than it can save"

    def test_where_set_up_fails_with_a_foreign_error(self, plans, monkeypatch, caplog):
        def fail(*args, **kwargs):
            raise IndexError("out of range")

        monkeypatch.setattr(by_default, "grouped_if_possible", fail)
        step, _ = sample(normal_model(300))
        assert "IndexError" in step.reason
        assert "IndexError: out of range" in caplog.text


class TestNUTSIsTriedWhereThereAreFewRows:
    def test_where_its_transitions_are_slow(self, monkeypatch):
        slow = CostOfNUTS(1.0, 100.0, is_measured=True)
        monkeypatch.setattr(by_default, "measured_cost", lambda *args, **_: slow)
        model, began = normal_model(300), time.perf_counter()
        step = built(model)
        elapsed = time.perf_counter() - began
        assert type(step) is FewRowsStep
        assert step.is_chosen_by_default
        stages = {"compiling NUTS", "trying NUTS", "finding the posterior mode", "trying chains"}
        assert stages < set(step.stages)
        assert 0.9 * elapsed < step.setup_seconds < elapsed
        assert f"compiling NUTS {step.stages['compiling NUTS']:.1f} s" in step.explain()

    @pytest.mark.parametrize(
        ("per_draw", "compilation", "reason"),
        [(1.0, 100.0, "longer without it"), (1e-9, 0.0, "too few"), (2e-3, 9.0, "too few")],
    )
    def test_and_taken_where_they_are_faster(self, monkeypatch, per_draw, compilation, reason):
        """Set-up was worth a try with the first, but the short chains are no faster."""
        fast = CostOfNUTS(per_draw, compilation, is_measured=True)
        monkeypatch.setattr(by_default, "measured_cost", lambda *args, **_: fast)
        monkeypatch.setattr(short_chains, "probe", lambda *args: Probe("", 3.0, 1.0, n_steps=400))
        step = built(normal_model(300))
        assert isinstance(step, AllRowsNUTS)
        assert reason in step.reason
        assert "Set-up: " in step.explain()

    def test_and_taken_where_it_cannot_begin(self, monkeypatch):
        def fail(*args, **_):
            raise pm.exceptions.SamplingError("Bad initial energy")

        monkeypatch.setattr(by_default, "measured_cost", fail)
        assert "too few" in built(normal_model(300)).reason

    def test_which_leaves_no_trace(self, monkeypatch):
        _, tried = sample(normal_model(300))
        monkeypatch.setattr(by_default, "measured_cost", lambda *args, **_: CostOfNUTS(0.0))
        _, untried = sample(normal_model(300))
        np.testing.assert_array_equal(tried.posterior["mu"], untried.posterior["mu"])


class Timed:
    """Transitions that take so long, and lead where an autoregressive process does."""

    vars = (SimpleNamespace(name="a"),)
    correlation = 0.0

    def __init__(self, monkeypatch, seconds):
        self.clock, self.seconds, self.n_made, self.calls = 0.0, seconds, 0, []
        self.rng = np.random.default_rng(1)
        monkeypatch.setattr(expected_time, "time", self)

    def process_time(self):
        return self.clock

    perf_counter = process_time

    def setup_chain(self, *args):
        self.calls.append("begun")

    def reset_tuning(self):
        self.calls.append("reset")

    def step(self, point):
        self.clock += self.seconds(self.n_made)
        self.n_made += 1
        moved = {"a": self.correlation * point["a"] + self.rng.normal(size=3)}
        return moved, [{"tree_size": 7}]


@pytest.mark.parametrize(
    ("seconds", "n_made", "per_draw", "is_first"),
    [
        (lambda n: 1e-5, 101, 1e-5, False),  # fast
        (lambda n: 5e-3 if n < 140 else 2e-3, 201, 2e-3, False),  # once the metric is learnt
        (lambda n: 1.0 if n == 0 else 0.1, 31, 0.1 / 4.0, False),  # no metric was learnt
        (lambda n: 1.0 if n == 0 else 0.1, 51, 0.1 / 4.0, True),  # nor within more time
        # and 10 gradients are expected
        (lambda n: 1.0 if n == 0 else 0.1, 31, 0.1 * 10 / 7.0, False),
    ],
)
def test_time_of_transitions(monkeypatch, seconds, n_made, per_draw, is_first):
    step, expected = Timed(monkeypatch, seconds), 10.0 if per_draw > 0.1 else 1.0
    monkeypatch.setattr(expected_time, "_gradients", lambda size: expected)
    trial = TrialOfNUTS(step, {"a": np.zeros(3)})
    cost = expected_time.measured_cost(trial, 0.0, Size(10, 10, 10, 1), is_first=is_first)
    trial.close()
    assert cost.is_measured
    assert cost.compilation == seconds(0)
    np.testing.assert_allclose(cost.per_draw, per_draw)
    assert abs(step.n_made - n_made) <= 1
    assert step.calls == ["begun", "reset"]


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_share_of_transitions_that_are_effective(monkeypatch, correlation):
    step = Timed(monkeypatch, lambda n: 1e-2 if n < 300 else 1e-3)
    step.correlation = correlation
    known, trial = CostOfNUTS(1.0, is_measured=True), TrialOfNUTS(step, {"a": np.zeros(3)})
    expected_time.measured_cost(trial, 0.0, Size(10, 10, 10, 1))
    cost = expected_time.watched_cost(trial, known, 1e3)
    assert cost.per_draw == pytest.approx(1e-3)
    expected = (1.0 - correlation) / (1.0 + correlation)
    assert expected / 3.0 < cost.share_effective < 3.0 * expected
    assert step.n_made == 400
    trial.close()
    assert step.calls == ["begun", "reset"]
    trial = TrialOfNUTS(step, {"a": np.zeros(3)})
    cost = expected_time.watched_cost(trial, known, 0.0)  # too slow to be watched
    assert np.isnan(cost.share_effective)
    trial.close()
    assert step.calls[2:] == ["begun", "reset"]


@pytest.mark.parametrize(
    ("seconds", "share", "is_watched", "is_taken"),
    [
        (0.9e-2, 1.0, False, True),  # no share makes NUTS faster
        (3e-2, 0.25, True, True),
        (3e-2, 0.5, True, False),
        (3e-2, 0.02, True, True),  # too few to be known
        (40e-2, 0.02, True, True),
        (8e-2, 0.2, True, False),
        (70e-2, 0.01, False, False),  # steps take as long as 35 transitions
    ],
)
def test_levels_are_moved_where_draws_of_nuts_are_much_alike(
    plans, monkeypatch, seconds, share, is_watched, is_taken
):
    cost, watched = CostOfNUTS(1e-2, 100.0, is_measured=True), []

    def watch(*args):
        watched.append(args)
        return cost._replace(share_effective=share)

    monkeypatch.setattr(by_default, "measured_cost", lambda *args, **_: cost)
    monkeypatch.setattr(by_default, "watched_cost", watch)
    found = Probe("", seconds, 0.5, n_steps=400)
    monkeypatch.setattr(short_chains, "probe", lambda *args: found)
    monkeypatch.setattr(by_default, "expected_cost", lambda size: cost)
    step = built(groups())
    assert isinstance(step, GroupedMH) == is_taken
    assert len(watched) == is_watched


@pytest.mark.parametrize(("share", "is_better"), [(0.01, True), (0.03, False)])
def test_what_mixes_is_better_than_a_nuts_that_is_stuck(share, is_better):
    """Though an effective draw is expected to take longer."""
    step, found = object.__new__(GroupedStep), Probe("", 0.6, 0.05)
    cost = CostOfNUTS(1e-2, is_measured=True, share_effective=share)
    assert (short_chains.reason_against(step, found, [cost]) == "") is is_better


class TestStepsPerDraw:
    """Where short chains show too few effective draws, and NUTS would take much longer."""

    @pytest.mark.parametrize(
        ("share", "per_step", "expected"),
        [
            (0.15, 1e-4, 1),  # enough
            (0.05, 1e-4, 4),
            (0.001, 1e-4, 20),
            (0.001, 0.15, 3),  # half of the second that a transition of NUTS takes
            (0.05, 2.0, 1),
            (np.nan, np.nan, 1),
        ],
    )
    def test_number(self, share, per_step, expected):
        found = Probe("", per_step / share, share)
        assert short_chains.steps_per_draw(found, [CostOfNUTS(1.0)]) == expected

    @pytest.mark.parametrize("model", [normal_model(300), groups()])
    def test_a_candidate_takes_them(self, plans, monkeypatch, caplog, model):
        monkeypatch.setattr(by_default, "steps_per_draw", lambda found, cost: 3)
        monkeypatch.setattr(by_default, "expected_cost", lambda size: CostOfNUTS(1_000.0))
        caplog.set_level(logging.INFO, "pymc.austerity")
        step, idata = sample(model)
        assert not isinstance(step, AllRowsNUTS)
        assert idata.sample_stats.attrs["steps_per_draw"] == 3
        assert "3 transitions a draw; set-up took" in caplog.text


class TestFewLevels:
    """Levels by themselves are tried where moves of everything at once fail, or first."""

    @pytest.fixture(autouse=True)
    def any_time(self, plans, monkeypatch):
        monkeypatch.setattr(by_default, "expected_cost", lambda size: CostOfNUTS(1_000.0))

    @pytest.mark.parametrize("error", [SetupTooLongError, NotRowwiseError])
    def test_where_everything_at_once_is_not_possible(self, monkeypatch, error):
        def end(*args, **kwargs):
            raise error("too long")

        monkeypatch.setattr(FewRowsStep, "__init__", end)
        assert isinstance(built(groups()), GroupedMH)
        assert built(normal_model(300)).reason == "too long"

    def test_where_everything_at_once_does_not_move(self, monkeypatch):
        def stuck(step, *args):
            return probe(step, *args) if isinstance(step, GroupedMH) else Probe("no", np.inf, 0.0)

        monkeypatch.setattr(short_chains, "probe", stuck)
        assert isinstance(built(groups()), GroupedMH)

    @pytest.mark.parametrize(("seconds", "is_first"), [(0.2, True), (0.5, False)])
    def test_exact_ones_come_before_a_test_that_is_not_much_faster(self, seconds, is_first):
        test = object.__new__(FewRowsStep)
        test.target = SimpleNamespace(sampling=object.__new__(StratifiedSampling))
        tried = [
            (object.__new__(GroupedStep), Probe("", 1.0, 0.1)),
            (test, Probe("", seconds, 0.1)),
        ]
        assert (min(tried, key=short_chains.by_time)[0] is test) is is_first

    def test_first_where_entries_have_few_rows(self, monkeypatch):
        monkeypatch.setattr(short_chains, "_CLEARLY_ENOUGH", 0.0)  # the first is taken
        chosen = []
        for fewest in (0, np.inf):
            monkeypatch.setattr(by_default, "_ROWS_OF_A_LEVEL", fewest)
            chosen.append(built(groups()))
        assert [isinstance(step, GroupedMH) for step in chosen] == [False, True]


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (short_chains, "probe", lambda *args: Probe("", 3.0, 1.0, n_steps=400)),
        (by_default, "_time_for_setup", lambda cost: 1_000.0 if cost.is_measured else 0.0),
    ],
)
def test_nuts_is_tried_where_it_would_be_taken(plans, monkeypatch, module, name, value):
    """Where it is slower than expected, others are better, or have more time for set-up."""
    slow = CostOfNUTS(10.0, is_measured=True)
    monkeypatch.setattr(by_default, "measured_cost", lambda *args, **_: slow)
    monkeypatch.setattr(module, name, value)
    assert type(built(normal_model(300))) is FewRowsStep


class TestProbe:
    def test_time_that_is_too_short_shows_that_of_a_step(self):
        step = built(normal_model(300), epsilon=0.05)
        found = probe(step, {"mu": np.array(0.0)}, 0.0, 400)
        assert not found.wrong
        assert 0.0 < found.seconds_per_effective_draw < 1.0
        assert np.isnan(found.share_effective)

    def test_chains_that_mix(self):
        step = built(normal_model(300), epsilon=0.05)
        found = probe(step, {"mu": np.array(0.0)}, 100.0, 400)
        assert not found.wrong
        assert 0.1 < found.share_effective <= 1.0
        assert step.phase.is_tuning

    @pytest.mark.parametrize(
        ("move", "words"),
        [(lambda x, rng: x, "did not move"), (lambda x, rng: x + 1e-9 * rng.normal(), "forget")],
    )
    def test_chains_that_stay_where_they_began(self, move, words):
        found = probe(Stuck(move), {"mu": np.array(0.0)}, 100.0, 400)
        assert words in found.wrong

    @pytest.mark.parametrize(
        ("seen", "lengths"),
        [
            ([Probe("", 1e-9, 0.5, n_steps=100)], [100]),  # clear at once
            ([Probe("", 1e-9, 0.01, n_steps=100), Probe("", 1e-9, 0.01, n_steps=400)], [100, 400]),
            ([Probe("", 1e-9, s, n_steps=n) for s, n in ((np.nan, 33), (0.2, 100))], [100, 100]),
            (
                [Probe("", 1e-9, s, n_steps=n) for s, n in ((np.nan, 9), (np.nan, 33), (0.3, 40))],
                [100, 100, 40],
            ),
            ([Probe("", 1e-9, 0.01, n_steps=n) for n in (90, 98, 98)], [100, 100, 100]),
            ([Probe("", 1e6, 0.01, n_steps=100), Probe("", 1e6, 0.01, n_steps=400)], [100, 400]),
            ([Probe("", 1e4, 0.01, n_steps=n) for n in (100, 150)], [100, 400]),  # slow
            ([Probe("no", np.inf, 0.0, n_steps=60), Probe("", 1e-9, 0.1, n_steps=100)], [100, 100]),
            ([Probe("no", np.inf, 0.0, n_steps=n) for n in (60, 100, 400)], [100, 100, 400]),
            ([Probe("no", np.inf, 0.0, n_steps=n) for n in (100, 400)], [100, 400]),
            ([Probe("", 1e-9, 0.05, n_steps=n) for n in (80, 100, 400)], [100, 100, 400]),  # vague
        ],
    )
    def test_chains_grow_only_where_they_must(self, monkeypatch, seen, lengths):
        made = []

        def of_length(step, point, seconds, n_steps):
            made.append(n_steps)
            return seen[len(made) - 1]

        monkeypatch.setattr(short_chains, "probe", of_length)
        costs = [expected_cost(Size(10**6, 10**7, 10**7, 100))]
        step = SimpleNamespace(setup_seconds=1.0)
        found = short_chains.glimpsed(step, {}, costs)
        found = short_chains.looked_at(step, found, {}, costs, np.inf)
        assert (found, made) == (seen[-1], lengths)

    @pytest.mark.parametrize(
        ("share", "seconds", "is_made"),
        [(0.05, 0.01, True), (0.05, 1e-6, False), (0.2, 0.01, False)],
    )
    def test_few_effective_draws_are_looked_at_for_longer(
        self, monkeypatch, share, seconds, is_made
    ):
        """Chains that stay in tails for hundreds of steps."""
        longer = Probe("", 0.1, 0.005, n_steps=1_600)
        monkeypatch.setattr(short_chains, "probe", lambda *made: longer)
        monkeypatch.setattr(short_chains, "reason_against", lambda *seen: "")
        step = object.__new__(FewRowsStep)
        step.setup_seconds = 1.0
        found = Probe("", seconds, share, n_steps=400)
        costs = [CostOfNUTS(0.1)]
        assert (short_chains.looked_at(step, found, {}, costs, np.inf) is longer) is is_made
        assert short_chains.looked_at(step, found, {}, costs, 0.0) is found  # no time is left

    def test_one_entry_is_seen_beside_many(self):
        """It moves little, 600 others are drawn anew."""
        step = Stuck(lambda x, rng: 0.8 * x + 0.6 * rng.normal())
        step.vars = tuple(SimpleNamespace(name=name) for name in ("mu", "others"))
        alone = step.step
        step.step = lambda point: (alone(point)[0] | {"others": step.rng.normal(size=600)}, COST)
        found = probe(step, {"mu": np.array(0.0), "others": np.zeros(600)}, 100.0, 400)
        assert 0.03 < found.share_effective < 0.25


COST = [{"data_fraction": 1.0}]


class Stuck:
    """Chains that begin apart."""

    vars = (SimpleNamespace(name="mu"),)

    def __init__(self, move):
        self.move = move

    def set_rng(self, rng):
        self.rng, self.start = rng, rng.normal()

    def reset_tuning(self):
        pass

    def step(self, point):
        return {"mu": self.move(point["mu"] or self.start, self.rng)}, COST


class TestFewRowsAreRead:
    def test_where_there_are_many(self):
        step, idata = sample(normal_model(100_000))
        assert type(step) is FewRowsStep
        assert idata.sample_stats["data_fraction"].mean() < 0.05

    @pytest.mark.few("300")
    @pytest.mark.parametrize("n_levels", [60, 300])
    def test_of_groups(self, plans, monkeypatch, n_levels):
        """Joint moves of 60 levels do not mix, though they are tried first."""
        monkeypatch.setattr(by_default, "expected_cost", lambda size: CostOfNUTS(1_000.0))
        rng = np.random.default_rng(1)
        group = np.repeat(np.arange(n_levels), 10)
        y = rng.poisson(np.exp(rng.normal(1.0, 0.5, size=n_levels))[group])
        with pm.Model() as model:
            a = pm.Normal("a", pm.Normal("m"), pm.HalfNormal("s"), shape=n_levels)
            pm.Poisson("y", pm.math.exp(a[group]), observed=y)
        assert isinstance(built(model), GroupedMH)

    @pytest.mark.parametrize(
        "settings", [{"epsilon": 0.05}, {"test": "exact"}, {"anchor": {"mu": 2.0}}]
    )
    def test_where_a_setting_asks_for_it(self, settings):
        assert type(built(normal_model(300), **settings)) is FewRowsStep

    @pytest.mark.parametrize(
        ("few", "levels", "is_grouped"),
        [
            (Probe("", 1e-3, 0.5), Probe("", 1e-4, 0.5), False),  # good enough: no other is tried
            (Probe("", 1e-3, 0.01), Probe("", 1e-2, 0.01), False),
            (Probe("", 1e-2, 0.01), Probe("", 1e-3, 0.01), True),
            (Probe("no moves", np.inf, 0.0), Probe("", 1.0, np.nan), True),
        ],
    )
    def test_of_sources(self, monkeypatch, few, levels, is_grouped):
        """NUTS cannot have their rows, but levels may be moved one by one."""
        rng, group = np.random.default_rng(1), np.repeat(np.arange(4), 100)
        y = rng.poisson(np.exp(rng.normal(1.0, 0.5, size=4))[group])
        with pm.Model() as model:
            a = pm.Normal("a", pm.Normal("m"), pm.HalfNormal("s"), shape=4)
            pm.Poisson("y", pm.math.exp(a[pm.Data("g", group[:7])]), observed=y[:7])

        def seen(step, *_):
            return levels if isinstance(step, GroupedStep) else few

        monkeypatch.setattr(by_default, "glimpsed", seen)
        step, idata = sample(model, data={"g": group, "y": y})
        assert isinstance(step, GroupedMH) == is_grouped
        assert idata.sample_stats.attrs["n_rows"] == 400

    def test_or_an_error_says_why_it_is_impossible(self):
        with pm.Model():
            pm.Normal("y", abs(pm.Normal("mu")) + 1.0, 1.0, observed=np.full(60, 3.0))
            with (
                pytest.warns(AusterityWarning, match="2 modes"),
                pytest.raises(SettingError, match="modes"),
            ):
                AusterityMH(control_variates=2)


class TestAllRowsNUTS:
    @pytest.mark.parametrize(
        "settings",
        [{"chains": 3, "initvals": {"mu": 3.0}}, {"cores": 2, "nuts": {"max_treedepth": 3}}],
    )
    def test_draws_are_those_of_pymc(self, settings):
        model = centered_groups()
        expected = run(None, model, init="jitter+adapt_diag", **settings)
        assert_same_draws(run(AusterityMH(), model, **settings), expected)

    def test_reads_the_full_data_behind_a_minibatch(self):
        y = np.random.default_rng(1).normal(2.0, 1.0, size=100)
        idata = run(AusterityMH(), normal_of(pm.Minibatch(y, batch_size=10), total_size=100))
        assert_same_draws(idata, run(AusterityMH(), normal_of(y)))
        assert set(idata.sample_stats["n_rows_used"].values.ravel() % 100) == {0}

    def test_starts_like_pymc_and_apart(self):
        step, _ = sample(normal_model(100))
        firsts = []
        for seed in (1, 2):
            begin_chain(step, np.random.default_rng(seed))
            step.reset_tuning()
            _, [statistics] = step.step({"mu": np.array(0.0)})
            firsts.append(statistics["energy"])
        assert firsts[0] != firsts[1]

    def test_a_chain_does_not_depend_on_those_before(self):
        """In the processes of a parallel run, PyMC does not reset step methods."""
        model, seen = normal_model(100), []
        for step in (sample(model)[0], built(model)):
            begin_chain(step, np.random.default_rng(1))
            _, [statistics] = step.step({"mu": np.array(0.0)})
            seen.append((statistics["energy"], statistics["step_size"]))
        assert seen[0] == seen[1]

    def test_begins_where_the_user_says(self):
        step, _ = sample(normal_model(100))
        step.reset_tuning()
        q0 = step.step({"mu": np.array(2.0)})[0]
        assert abs(q0["mu"] - 2.0) < 1.0

    @pytest.mark.few("bounds1-model.point_logps")
    @pytest.mark.parametrize(
        ("bounds", "words"),
        [((-100, 100), "write them with a decimal point"), ((2.0, 1.0), "model.point_logps")],
    )
    def test_a_start_without_density_is_an_error_in_a_sentence(self, bounds, words):
        with pm.Model() as model:
            pm.Normal("y", pm.Uniform("mu", *bounds), 1.0, observed=np.ones(5))
        with pytest.raises(DataError, match=words):
            sample(model)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyMC 6 with its own simulator
    def test_a_simulator_is_refused(self):
        def simulate(rng, mu, size=None):
            return rng.normal(mu, 1.0, size=size)

        with pm.Model():
            pm.Simulator("y", simulate, pm.Normal("mu"), observed=np.ones(5))
            with pytest.raises(NotRowwiseError, match="sample_smc"):
                AusterityMH()

    def test_leaves_discrete_variables_to_pymc(self):
        y = np.random.default_rng(1).normal(2.0, 1.0, size=50)
        with pm.Model() as model:
            z = pm.Bernoulli("z", 0.5)
            pm.Normal("y", pm.Normal("mu", 0.0, 10.0) + z, 1.0, observed=y)
        step, idata = sample(model)
        assert [v.name for v in step.vars] == ["mu"]
        assert set(idata.posterior) == {"mu", "z"}
        assert "Left to other step methods of PyMC: z." in step.explain()
        assert "NUTS (with other step methods for z) on all rows" in step.summary
        assert "nutpie" not in step.summary

    def test_is_replaced_by_pymcs_choice_where_all_are_discrete(self):
        y = np.random.default_rng(1).poisson(3.0, size=500).astype(np.int32)
        with pm.Model() as model:
            batch = pm.Minibatch(y, batch_size=2)  # is undone, as everywhere
            pm.Poisson("y", pm.DiscreteUniform("k", 1, 9), observed=batch, total_size=500)
        step, idata = sample(model)
        assert isinstance(step, PyMCSteps)
        assert isinstance(step, AusterityMH)
        assert abs(float(idata.posterior["k"].mean()) - y.mean()) < 0.2


def test_naming_the_likelihood_leaves_the_choice():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Potential("rows", pm.logp(pm.Normal.dist(mu, 1.0), np.linspace(0.5, 1.5, 200)))
        pm.Potential("penalty", -(mu**2))
    step = built(model, likelihood=["rows"])
    assert isinstance(step, AllRowsNUTS)
    assert (step.n_rows, step.subsampled) == (200, ("rows",))
    assert "200 rows are too few" in step.summary
    with pytest.raises(SettingError, match="names 'row', which is not"):
        built(model, likelihood=["row"])
    with pytest.raises(NotRowwiseError, match="'penalty' has a log-density of shape"):
        built(model, likelihood=["penalty"])


@pytest.mark.parametrize("is_square", [True, False])
def test_modes_that_chains_of_nuts_may_not_reach_are_told(is_square, recwarn):
    """Half of the runs of a model whose sign is not identified see one mode alone."""
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Normal("y", a**2 if is_square else a, observed=np.linspace(0.5, 1.5, 200))
    step = built(model)
    assert isinstance(step, AllRowsNUTS)
    found = [w for w in recwarn if issubclass(w.category, AusterityWarning)]
    assert len(found) == is_square
    for warning in found:
        words = "has 2 modes of comparable weight, which differ most in 'a'"
        assert words in str(warning.message)
        assert warning.filename == running.__file__  # the line that constructs the step method
    if not is_square:
        np.testing.assert_allclose(step.hessian(np.array([0.3])), [[-201.0]], rtol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"epsilon": 0.05}])
@pytest.mark.parametrize("n_in_column", [59, 60])
def test_models_that_cannot_be_evaluated_are_refused_with_a_remedy(settings, n_in_column):
    """What numba compiles reads whatever is in memory behind the last level."""
    with pm.Model() as model:
        levels = pm.Normal("levels", shape=5)
        group = pm.Data("group", np.arange(60) % (5 if n_in_column < 60 else 6))
        mu = levels[group] * pm.Data("x", np.ones(n_in_column))
        pm.Normal("y", mu, 1.0, observed=np.zeros(60))
    with pytest.raises(DataError, match="cannot be evaluated where chains start"):
        built(model, **settings)
