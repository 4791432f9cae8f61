import numpy as np
import pytest
from scipy import stats

from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import Layout, Outcome, RandomWalkProposal

COVARIANCE = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1e-4]])


def moves_of(walk, layout, point, rng, n=4_000):
    state = walk.init(layout)
    return np.array([walk.propose(state, point, rng)[0] - point for _ in range(n)])


def test_moves_have_the_given_covariance(rng):
    walk = RandomWalkProposal(covariance=COVARIANCE, scaling=0.5)
    moves = moves_of(walk, Layout.continuous(3), np.array([1.0, -2.0, 5.0]), rng)
    sds = np.sqrt(np.diag(COVARIANCE)) * 0.5
    standard = np.linalg.solve(np.linalg.cholesky(0.25 * COVARIANCE), moves.T)
    for row in standard:
        assert stats.kstest(row, "norm").pvalue > 1e-4
    np.testing.assert_allclose(np.corrcoef(standard), np.eye(3), atol=4 / np.sqrt(4_000))
    np.testing.assert_allclose(moves.std(axis=0), sds, rtol=4 / np.sqrt(8_000))


def test_variances_are_a_diagonal_covariance():
    point = np.zeros(3)
    full = RandomWalkProposal(covariance=np.diag([1.0, 4.0, 9.0]), scaling=1.0)
    diagonal = RandomWalkProposal(covariance=[1.0, 4.0, 9.0], scaling=1.0)
    layout = Layout.continuous(3)
    a, ratio, _ = full.propose(full.init(layout), point, np.random.default_rng(5))
    b, *_ = diagonal.propose(diagonal.init(layout), point, np.random.default_rng(5))
    np.testing.assert_allclose(a, b)
    assert ratio == 0.0


def test_points_keep_their_type(rng):
    walk = RandomWalkProposal()
    for dtype in (np.float32, np.float64):
        new, *_ = walk.propose(walk.init(Layout.continuous(2)), np.zeros(2, dtype), rng)
        assert new.dtype == dtype


def chain_on_a_density(walk, state, log_density, point, n_steps, rng):
    """Metropolis with exact decisions: the last state, and after tuning states and acceptances."""

    def step(state, point):
        proposed, _, state = walk.propose(state, point, rng)
        accepted = np.log(rng.random()) < log_density(proposed) - log_density(point)
        return state, proposed if accepted else point, accepted

    for _ in range(n_steps):
        state, following, accepted = step(state, point)
        state = walk.tune(state, Outcome(point, following, accepted, 1))
        point = following
    state, after = walk.freeze(state), []
    for _ in range(3_000):
        state, point, accepted = step(state, point)
        after.append((state, accepted))
    return state, after


def chain_on_a_normal(walk, covariance, start, n_steps, rng):
    """The last state and the acceptance rate."""
    precision, point = np.linalg.inv(covariance), np.array(start, dtype=float)
    state = walk.init(Layout.continuous(len(start)))
    about = (lambda x: -0.5 * x @ precision @ x), point, n_steps, rng
    state, after = chain_on_a_density(walk, state, *about)
    return state, np.mean([accepted for _, accepted in after])


@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_finds_scale_and_shape_from_afar(kind, size, rng):
    covariance = size**2 * COVARIANCE
    state, acceptance = chain_on_a_normal(
        RandomWalkProposal(covariance=kind), covariance, np.ones(3), 2_000, rng
    )
    root = state.root if kind == "full" else np.diag(state.root)
    learnt = root @ root.T
    sds = np.sqrt(np.diag(learnt))
    # the shape, up to the common factor that the scale takes care of
    relative = sds / np.sqrt(np.diag(covariance))
    assert relative.max() / relative.min() < 3.0
    correlation = learnt[0, 1] / (sds[0] * sds[1])
    assert correlation > 0.6 if kind == "full" else correlation == 0.0
    assert 0.15 < acceptance < 0.55  # aims for 0.337 in three dimensions


def test_target_acceptance_is_reached(rng):
    _, acceptance = chain_on_a_normal(
        RandomWalkProposal(target_acceptance=0.7), np.eye(2), np.zeros(2), 2_000, rng
    )
    assert abs(acceptance - 0.7) < 0.08


def test_given_covariance_is_not_relearnt(rng):
    walk = RandomWalkProposal(covariance=COVARIANCE)
    state, acceptance = chain_on_a_normal(walk, 100 * COVARIANCE, np.zeros(3), 1_000, rng)
    np.testing.assert_allclose(state.root, np.linalg.cholesky(COVARIANCE))
    assert walk.current_scaling(state) > 4.0  # the scale is
    assert abs(acceptance - 0.337) < 0.1


def test_a_chain_that_never_moves_keeps_its_shape():
    walk, point = RandomWalkProposal(), np.zeros(2)
    state = walk.init(Layout.continuous(2))
    for _ in range(120):
        state = walk.tune(state, Outcome(point, point, False, 1))
    np.testing.assert_array_equal(state.root, np.ones(2))
    assert walk.current_scaling(state) < 1e-3


def test_integers_move_by_integers_and_always_can(rng):
    layout = Layout(np.array([0, 1, 1]))
    walk = RandomWalkProposal(covariance=[1.0, 100.0, 1e-8], scaling=0.1)
    moves = moves_of(walk, layout, np.array([0.5, 10.0, -3.0]), rng)
    assert np.all(moves[:, 1:] == np.round(moves[:, 1:]))
    assert not np.all(moves[:, 0] == np.round(moves[:, 0]))
    for entry in (1, 2):
        up, down = (moves[:, entry] > 0).sum(), (moves[:, entry] < 0).sum()
        assert up > 400
        assert abs(up - down) < 4 * np.sqrt(up + down)


def test_categories_change_to_each_other_one_alike(rng):
    layout = Layout(np.array([2, 4]))
    walk = RandomWalkProposal(scaling=1.0)
    point = np.array([1, 2])
    after = moves_of(walk, layout, point, rng) + point
    binary, four = np.bincount(after[:, 0].astype(int)), np.bincount(after[:, 1].astype(int))
    assert binary.size == 2 and four.size == 4
    assert abs(binary[0] / 4_000 - 0.5) < 4 * 0.5 / np.sqrt(4_000)
    assert stats.chisquare(four[[0, 1, 3]]).pvalue > 1e-4


def test_covariance_of_another_size_is_refused():
    with pytest.raises(SettingError, match="2 entries"):
        RandomWalkProposal(covariance=np.eye(3)).init(Layout.continuous(2))
