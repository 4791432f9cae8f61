"""Decisions from a pool are those of Poisson sampling, and every draw is used once."""

import threading

import numpy as np
import pytest

from pymc_austerity.deciding.poisson import PoissonSampling
from pymc_austerity.deciding.pool import SETUP, Pool, PooledSampling
from pymc_austerity.deciding.pool_draws import StoredDraws
from pymc_austerity.deciding.pooled import chain_number
from pymc_austerity.errors import StorageError
from pymc_austerity.exact import group_rows
from pymc_austerity.rows import ArrayRows

CENTER, ROOT = np.zeros(1), np.eye(1)
CURRENT, PROPOSED = np.array([0.4]), np.array([1.1])


def residual(proposed, current, slopes, _numbers):
    """A cubic of each row."""
    return slopes * (proposed[0] ** 3 - current[0] ** 3) / 6.0


class Rows:
    """Rows in groups, in memory; draws are recorded."""

    def __init__(self, slopes, groups):
        self.slopes, self.groups, self.made = slopes, groups, []

    def stored(self, positions):
        block = [self.slopes[positions], positions]
        return StoredDraws(ArrayRows(block), ArrayRows([positions]))

    def positions(self, counts, seed):
        sizes, starts = np.diff(self.groups.starts), self.groups.starts[:-1]
        which = np.repeat(np.arange(counts.size), counts)
        uniform = np.random.default_rng(seed).random(which.size)
        return starts[which] + (uniform * sizes[which]).astype(np.int64)

    def draw(self, counts, seed):
        self.made.append(seed)
        return self.stored(self.positions(counts, seed))

    def sum_over(self, function, groups):
        own = np.repeat(groups, np.diff(self.groups.starts))
        return float(function(self.slopes[own], np.flatnonzero(own)).sum()), int(own.sum())


def samplings(rng, *, whole=(), per_group=200, n_parts=3, scale=2e-3):
    """Poisson sampling from all rows, and from a pool."""
    constants = scale * np.exp(rng.normal(0.0, 1.0, 2_000))
    order, groups = group_rows(constants[None], np.array([10.0]))
    slopes = (constants * rng.uniform(-1.0, 1.0, 2_000))[order]
    rows, sizes = Rows(slopes, groups), np.diff(groups.starts)
    source, numbers = ArrayRows([slopes, np.arange(2_000)]), ArrayRows([np.arange(2_000)])
    known = (CENTER, ROOT, groups)
    direct = PoissonSampling(residual, source, numbers, *known)
    is_whole = np.isin(np.arange(groups.n_groups), whole)
    lengths = np.where(is_whole, 0, per_group)
    begins = np.where(is_whole, np.cumsum(sizes * is_whole) - sizes * is_whole, -1)
    positions = [np.flatnonzero(np.repeat(is_whole, sizes))]
    positions += [rows.positions(lengths, (9, part, 0)) for part in range(n_parts)]
    pool = Pool(rows.stored(np.concatenate(positions)), begins, lengths, n_parts, 9)
    stored = pool.stored
    return direct, PooledSampling(
        residual, stored.rows, stored.numbers, *known, pool=pool, everywhere=rows
    )


def decisions(decide, rng, n=20_000):
    made = [decide(PROPOSED, CURRENT, 0.1, 1.0, rng) for _ in range(n)]
    return np.array([(m.accept, m.n_rows_used, m.log_ratio) for m in made])


@pytest.mark.few("whole0")
@pytest.mark.parametrize("whole", [(), (0, 1, 3)])
def test_decisions_are_distributed_as_without_a_pool(rng, whole):
    direct, pooled = samplings(rng, whole=whole, per_group=5_000)
    one = decisions(direct.decide, rng)
    draws = pooled.draws_of(1)
    two = decisions(lambda *given: pooled.decide(*given, draws=draws), rng)
    assert draws.n_refills > 0  # draws of the pool and of refills are among them
    error = np.sqrt((one.var(axis=0) + two.var(axis=0)) / len(one))
    assert (abs(one.mean(axis=0) - two.mean(axis=0)) < 4.0 * error).all()
    spread = np.sqrt(2.0 * one[:, 1:].var(axis=0) ** 2 / len(one)) * 2.0
    assert (abs(one[:, 1:].var(axis=0) - two[:, 1:].var(axis=0)) < 4.0 * spread).all()


def test_every_draw_is_used_once_in_the_order_of_the_pool(rng):
    _, pooled = samplings(rng)
    seen = []
    rows = pooled.pool.stored.rows
    draws, given = pooled.draws_of(2), rows.take
    rows.take = lambda indices: (seen.append(indices), given(indices))[1]
    for _ in range(30):
        pooled.decide(PROPOSED, CURRENT, 0.1, 1.0, rng, draws=draws)
    used = np.concatenate(seen)
    assert draws.n_refills == 0 and used.size > 20
    assert np.unique(used).size == used.size == draws.used.sum()
    begin, length = pooled.pool.begin(2), pooled.pool.lengths
    expected = [np.arange(b, b + n) for b, n in zip(begin, draws.used, strict=True)]
    np.testing.assert_array_equal(np.sort(used), np.sort(np.concatenate(expected)))
    others = [pooled.pool.begin(part) for part in (0, 1)]
    assert all((b + length <= begin[0]).all() for b in others)


def test_the_parts_of_a_pool_are_all_of_it(rng):
    _, pooled = samplings(rng, whole=(1, 2))
    pool, sizes = pooled.pool, np.diff(pooled.groups.starts)
    n_whole = sizes[[1, 2]].sum()
    assert pool.begin(0)[0] == n_whole
    assert pool.stored.rows.n_rows == n_whole + 3 * pool.lengths.sum()
    np.testing.assert_array_equal(pool.begin(2) - pool.begin(1), pool.lengths.sum())
    (numbers,) = pool.stored.numbers.window(0, pool.stored.rows.n_rows)
    for part in range(3):
        for g, (begin, n) in enumerate(zip(pool.begin(part), pool.lengths, strict=True)):
            own = numbers[begin : begin + n]
            assert ((pooled.groups.starts[g] <= own) & (own < pooled.groups.starts[g + 1])).all()


def test_refills_are_the_same_again_and_of_each_chain_alone(rng):
    _, pooled = samplings(rng, per_group=3)
    states = []
    for part in (1, 1, 2, 7):  # there is no part 7: that chain draws for itself
        draws, own = pooled.draws_of(part), np.random.default_rng(5)
        made = [pooled.decide(PROPOSED, CURRENT, 0.1, 1.0, own, draws=draws) for _ in range(60)]
        states.append((draws.n_refills, [m.log_ratio for m in made]))
    assert states[0] == states[1] != states[2] != states[3]
    assert min(n for n, _ in states) > 0
    seeds = pooled.everywhere.made
    assert {seed[:2] for seed in seeds} == {(9, 1), (9, 2), (9, 7)}
    assert len(set(seeds)) == sum(n for n, _ in states[1:])


class TestDrawnAhead:
    """A thread draws what follows while the chain goes on."""

    @staticmethod
    def run(pooled, rng, *, ahead, n=60):
        draws, ratios = pooled.draws_of(1), []
        for _ in range(n):
            if ahead:
                pooled.draw_ahead(draws)
            made = pooled.decide(PROPOSED, CURRENT, 0.1, 1.0, rng, draws=draws)
            ratios.append(made.log_ratio)
        return draws, ratios

    def test_draws_are_the_same(self, rng):
        _, pooled = samplings(rng, per_group=5)
        runs = [
            self.run(pooled, np.random.default_rng(5), ahead=ahead, n=200)
            for ahead in (False, True, True)
        ]
        (one, expected), *others = runs
        assert one.n_refills > 2
        for draws, ratios in others:
            assert ratios == expected
            assert draws.n_refills == one.n_refills
            np.testing.assert_array_equal(draws.used, one.used)

    def test_they_are_drawn_once_and_early(self, rng, monkeypatch):
        _, pooled = samplings(rng, per_group=20)
        threads, draw = [], pooled.everywhere.draw

        def drawn(counts, seed):
            threads.append(threading.current_thread().name)
            return draw(counts, seed)

        monkeypatch.setattr(pooled.everywhere, "draw", drawn)
        draws, _ = self.run(pooled, rng, ahead=True, n=400)
        assert draws.n_refills > 1
        assert threads.count("rows-drawn-ahead") >= draws.n_refills
        assert len(set(pooled.everywhere.made)) == len(pooled.everywhere.made)

    def test_nothing_is_drawn_before_most_are_used(self, rng):
        _, pooled = samplings(rng, per_group=200)
        draws, _ = self.run(pooled, rng, ahead=True, n=20)
        assert draws.ahead is None and not pooled.everywhere.made
        setup = pooled.draws_of(SETUP)
        setup.used = setup.lengths
        pooled.draw_ahead(setup)
        assert setup.ahead is None

    def test_a_decision_that_needs_more_draws_again(self, rng):
        _, pooled = samplings(rng, per_group=5)
        draws = pooled.draws_of(1)
        draws.used = draws.lengths.copy()
        pooled.draw_ahead(draws)
        needed = 10 * draws.following
        pooled._refill(draws, needed)
        assert (draws.lengths == 2 * needed).all()
        assert draws.own.rows.n_rows == draws.lengths.sum()

    def test_an_error_is_raised_when_they_are_needed(self, rng, monkeypatch):
        _, pooled = samplings(rng, per_group=20)

        def gone(counts, seed):
            raise StorageError("the file is gone")

        monkeypatch.setattr(pooled.everywhere, "draw", gone)
        with pytest.raises(StorageError, match="the file is gone"):
            self.run(pooled, rng, ahead=True, n=400)


def test_what_is_pickled_goes_on_with_the_same_draws(rng):
    _, pooled = samplings(rng, per_group=3)
    draws, own = pooled.draws_of(1), np.random.default_rng(5)
    while not draws.n_refills:
        pooled.decide(PROPOSED, CURRENT, 0.1, 1.0, own, draws=draws)
    again = type(draws)(**draws.__getstate__())
    assert again.own is None and again.ahead is None
    ratios = []
    for state in (draws, again):
        fresh = np.random.default_rng(6)
        ratios.append(
            [
                pooled.decide(PROPOSED, CURRENT, 0.1, 1.0, fresh, draws=state).log_ratio
                for _ in range(9)
            ]
        )
    assert ratios[0] == ratios[1]


def test_set_up_uses_its_part_again_and_never_draws(rng):
    _, pooled = samplings(rng, per_group=3)
    draws = pooled.draws_of(SETUP)
    for _ in range(100):
        pooled.decide(PROPOSED, CURRENT, 0.1, 1.0, rng, draws=draws)
    assert draws.n_refills == 0 and not pooled.everywhere.made


def test_groups_with_loose_bounds_are_read_from_the_pool_or_in_a_pass(rng, caplog):
    far = np.array([9.0])
    direct, pooled = samplings(rng, whole=(0,), per_group=2_000)
    caplog.set_level("INFO", "pymc.austerity")
    draws = pooled.draws_of(1)
    one = [direct.decide(far, CURRENT, 0.0, 1.0, rng) for _ in range(300)]
    two = [pooled.decide(far, CURRENT, 0.0, 1.0, rng, draws=draws) for _ in range(300)]
    assert "reads" in caplog.text and "in a pass over all of them" in caplog.text
    ratios = [np.array([m.log_ratio for m in made]) for made in (one, two)]
    error = np.sqrt(sum(r.var() for r in ratios) / 300)
    assert abs(ratios[0].mean() - ratios[1].mean()) < 4.0 * error + 1e-9
    beyond = np.array([11.0])
    exact = float(residual(beyond, CURRENT, *direct.source.window(0, 2_000)).sum())
    made = pooled.decide(beyond, CURRENT, 0.0, 1.0, rng, draws=draws)
    assert made.n_rows_used == 2_000
    assert made.log_ratio == pytest.approx(exact, rel=1e-12)


def test_chains_that_were_spawned_twice_have_parts_of_their_own():
    """As within a CompoundStep, where each method has a generator that its chain's spawned."""
    chains = np.random.default_rng(1).spawn(3)
    inner = [rng for chain in chains for rng in chain.spawn(2)]
    numbers = [chain_number(rng) for rng in inner]
    assert len(set(numbers)) == len(inner)
    assert min(numbers) > 1_000 and numbers == [chain_number(rng) for rng in inner]
