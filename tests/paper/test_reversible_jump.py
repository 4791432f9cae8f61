import numpy as np
import pytest
from scipy import stats

from pymc_austerity.paper import ReversibleJumpProposal
from pymc_austerity.paper.selection import Births
from pymc_austerity.proposals import Block, Layout, Outcome
from tests.references import mean_and_error

N = 3


def layout_of(n=N, n_others=0):
    """Others first, then indicators, then coefficients: nothing depends on the order."""
    kinds = np.repeat([0, 2, 0], [n_others, n, n])
    others = (Block("sigma", (n_others,), 0),) if n_others else ()
    blocks = (*others, Block("gamma", (n,), n_others), Block("beta", (n,), n_others + n))
    return Layout(kinds, blocks)


def point_of(included, n_others=0, value=0.7):
    included = np.asarray(included, dtype=float)
    return np.concatenate([np.ones(n_others), included, value * included])


def experienced(jump, layout, rng):
    """State that has learnt something different of each coefficient."""
    state = jump.init(layout)
    n = state.births.means.size
    means, variances = rng.normal(size=n), rng.uniform(0.1, 1.0, size=n)
    variances[-1] = 0.0  # nothing known of the last one
    births = Births(state.births.wide, 0.4, np.full(n, 200), means, variances)
    searches = tuple(search._replace(log_scale=rng.normal()) for search in state.searches)
    return state._replace(births=births, searches=searches)


def share_of_jumps(kind, k, n, jump_share, n_others):
    """Probability of a birth or a death, written down from the definition."""
    if kind == "birth":
        if k == n:
            return 0.0
        if k == 0:
            return 1.0 if n_others == 0 else jump_share
    if kind == "death":
        if k == 0:
            return 0.0
        if k == n:
            return jump_share
    return jump_share / 2


def log_kernel(state, before, after, jump_share, n_others):
    """Log-density of the move from one point to another, by brute force."""
    inside_before = before[state.inclusion].astype(bool)
    inside_after = after[state.inclusion].astype(bool)
    k, n = int(inside_before.sum()), inside_before.size
    changed = np.flatnonzero(inside_before != inside_after)
    if changed.size == 1 and inside_after[changed[0]]:
        j = changed[0]
        births, value = state.births, after[state.coefficients][j]
        mean, sd = (births.means[j], 1.5 * np.sqrt(births.variances[j]))
        if sd == 0.0:
            mean, sd = 0.0, births.usual_step
        density = 0.8 * stats.norm.pdf(value, mean, sd) + 0.2 * stats.norm.pdf(
            value, 0.0, births.wide
        )
        choice = share_of_jumps("birth", k, n, jump_share, n_others) / (n - k)
        return np.log(choice * density)
    if changed.size == 1:
        return np.log(share_of_jumps("death", k, n, jump_share, n_others) / k)
    assert changed.size == 0
    (entry,) = np.flatnonzero(before != after)
    movable = [*np.flatnonzero(inside_before) + state.coefficients.start, *state.others]
    place = (
        entry - state.coefficients.start
        if entry >= state.coefficients.start
        else n + list(state.others).index(entry)
    )
    jumps = sum(share_of_jumps(x, k, n, jump_share, n_others) for x in ("birth", "death"))
    step = stats.norm.pdf(after[entry], before[entry], state.searches[place].scale)
    return np.log((1 - jumps) / len(movable) * step)


@pytest.mark.parametrize("n_others", [0, 2])
@pytest.mark.parametrize("jump_share", [0.3, 0.8])
def test_log_ratio_is_that_of_the_densities_of_the_moves(n_others, jump_share, rng):
    jump = ReversibleJumpProposal("beta", "gamma", jump_share=jump_share, birth_scale=2.0)
    state = experienced(jump, layout_of(n_others=n_others), rng)
    kinds = set()
    for _ in range(600):
        before = point_of(rng.random(N) < 0.5, n_others, rng.normal())
        after, log_ratio, _ = jump.propose(state, before, rng)
        forth = log_kernel(state, before, after, jump_share, n_others)
        back = log_kernel(state, after, before, jump_share, n_others)
        assert log_ratio == pytest.approx(back - forth, abs=1e-9)
        k, difference = before[state.inclusion].sum(), (after - before)[state.inclusion].sum()
        kinds.add((int(k), int(difference)))
    possible = {(k, d) for k in range(N + 1) for d in (-1, 0, 1) if 0 <= k + d <= N}
    assert kinds == (possible if n_others else possible - {(0, 0)})


def test_without_data_the_prior_is_sampled(rng):
    """Moves accepted by prior and log-ratio alone: the number of coefficients and their values."""
    jump = ReversibleJumpProposal("beta", "gamma", birth_scale=2.0)
    state = experienced(jump, layout_of(), rng)
    slab, log_size = stats.laplace(0.3, 0.5), np.log([0.1, 0.2, 0.3, 0.4])
    log_choices = np.log([1, 3, 3, 1])

    def log_prior(point):
        inside = point[state.inclusion].astype(bool)
        k = inside.sum()
        return log_size[k] - log_choices[k] + slab.logpdf(point[state.coefficients][inside]).sum()

    point, draws = point_of([1, 0, 1]), []
    log_current = log_prior(point)
    for _ in range(12_000):
        new, log_ratio, _ = jump.propose(state, point, rng)
        log_new = log_prior(new)
        if np.log(rng.random()) < log_new - log_current + log_ratio:
            point, log_current = new, log_new
        draws.append(point)
    draws = np.array(draws)
    k = draws[:, state.inclusion].sum(axis=1)
    for size, share in enumerate([0.1, 0.2, 0.3, 0.4]):
        mean, error = mean_and_error(k == size)
        assert abs(mean - share) < 4 * error
    inside = draws[:, state.inclusion] == 1
    values = np.where(inside, draws[:, state.coefficients], np.nan)
    for below in slab.ppf([0.1, 0.5, 0.9]):
        hits = np.where(inside, (values < below) - slab.cdf(below), 0.0).sum(axis=1)
        mean, error = mean_and_error(hits)
        assert abs(mean) < 4 * error


def test_births_follow_their_density(rng):
    births = Births(2.0, 0.3, np.array([500, 0]), np.array([1.0, 0.0]), np.array([0.04, 0.0]))
    grid = np.linspace(-12, 12, 4_801)
    for j in (0, 1):
        density = np.exp([births.log_density(j, value) for value in grid])
        cumulative = np.cumsum(density) * (grid[1] - grid[0])
        assert cumulative[-1] == pytest.approx(1.0, abs=1e-6)
        draws = [births.draw(j, rng) for _ in range(3_000)]
        assert stats.kstest(draws, lambda x: np.interp(x, grid, cumulative)).pvalue > 1e-4  # noqa: B023


def test_births_learn_where_coefficients_are(rng):
    births = Births.begin(2, 1.0)
    for _ in range(2_000):
        births = births.learn(np.array([1]), np.array([rng.normal(3.0, 0.5)]))
    assert births.n_steps.tolist() == [0, 2_000]
    assert births.means[1] == pytest.approx(3.0, abs=4 * 0.5 / np.sqrt(2_000 * 7 / 16))
    assert np.sqrt(births.variances[1]) == pytest.approx(0.5, rel=4 / np.sqrt(2 * 2_000 * 7 / 16))
    assert births.log_density(0, 0.0) == pytest.approx(stats.norm.logpdf(0.0))


def test_steps_are_tuned_one_by_one_and_frozen(rng):
    """Posterior sds 0.01 and 10; the third coefficient is never in."""
    jump = ReversibleJumpProposal("beta", "gamma", jump_share=0.01)
    state = jump.init(layout_of())
    sds, point = np.array([0.01, 10.0, 1.0]), point_of([1, 1, 0])

    def decide(new):
        if not np.array_equal(new[state.inclusion], [1, 1, 0]):
            return False
        beta, proposed = point[state.coefficients], new[state.coefficients]
        return np.log(rng.random()) < ((beta / sds) ** 2 - (proposed / sds) ** 2).sum() / 2

    for _ in range(4_000):
        new, _, state = jump.propose(state, point, rng)
        accepted = decide(new)
        following = new if accepted else point
        state = jump.tune(state, Outcome(point, following, accepted, 1))
        point = following
    frozen = jump.freeze(state)
    scales = np.array([search.scale for search in frozen.searches])
    np.testing.assert_allclose(scales[:2] / sds[:2], 2.4, rtol=0.35)  # 2.38 sds: 0.44 accepted
    assert scales[2] == pytest.approx(np.sqrt(scales[0] * scales[1]))
    assert frozen.births.usual_step == pytest.approx(scales[2])
    np.testing.assert_allclose(np.sqrt(frozen.births.variances[:2]), sds[:2], rtol=0.35)
    *_, frozen = jump.propose(frozen, point, rng)
    assert jump.current_scaling(frozen) == frozen.scale


def test_starts_are_dispersed_and_possible(rng):
    layout = layout_of(n=8, n_others=1)
    jump = ReversibleJumpProposal("beta", "gamma")
    point = point_of(np.repeat([1, 0], 4), n_others=1)
    starts = np.array([jump.disperse(layout, point, 1.0, rng) for _ in range(200)])
    state = jump.init(layout)
    included = starts[:, state.inclusion]
    assert set(np.unique(included)) == {0.0, 1.0}
    np.testing.assert_array_equal(starts[:, state.coefficients] != 0.0, included == 1.0)
    shares = included.mean(axis=0)
    assert ((shares[:4] > 0.6) & (shares[:4] < 0.9)).all()
    assert ((shares[4:] > 0.1) & (shares[4:] < 0.4)).all()
    assert np.ptp(starts[:, 0]) > 1.0
