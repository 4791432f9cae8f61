import numpy as np
import pytest
from scipy import stats

from pymc_austerity.errors import SettingError
from pymc_austerity.paper import StiefelProposal
from pymc_austerity.proposals import Block, Layout
from tests.proposals.test_random_walk import chain_on_a_density


def layout_of(*shapes):
    firsts = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
    blocks = tuple(
        Block(f"W{i}", shape, int(first), orthonormal=True)
        for i, (shape, first) in enumerate(zip(shapes, firsts[:-1], strict=True))
    )
    return Layout(np.zeros(firsts[-1], dtype=np.int64), blocks)


def uniform(n, p, rng):
    q, r = np.linalg.qr(rng.normal(size=(n, p)))
    return q * np.sign(np.diag(r))


def distance_from_manifold(matrices):
    gram = np.swapaxes(matrices, -1, -2) @ matrices
    return np.abs(gram - np.eye(gram.shape[-1])).max()


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 2), (4, 1), (2, 3, 3)])
def test_proposals_are_on_the_manifold(shape, rng):
    walk = StiefelProposal(scaling=1.0, reflect=0.5)
    state = walk.init(layout_of(shape))
    point, visited = np.broadcast_to(np.eye(*shape[-2:]), shape).ravel(), []
    for _ in range(200):
        new, log_ratio, _ = walk.propose(state, point, rng)
        assert distance_from_manifold(new.reshape(shape)) < 1e-13
        assert log_ratio == 0.0
        visited.append(new)
        point = new
    assert (np.ptp(visited, axis=0) > 0.5).all()


def test_rounding_errors_are_corrected(rng):
    walk = StiefelProposal()
    state = walk.init(layout_of((4, 3)))
    point = np.eye(4, 3).ravel() + rng.normal(0.0, 1e-4, size=12)
    distances = []
    for _ in range(3):
        point, *_ = walk.propose(state, point, rng)
        distances.append(distance_from_manifold(point.reshape(4, 3)))
    assert distances[0] < 1e-6
    assert distances[2] < 1e-14


@pytest.mark.few("3-2")
@pytest.mark.parametrize(("n", "p"), [(3, 3), (3, 2)])
def test_symmetric_under_the_uniform_distribution(n, p, rng):
    """(W, W') has the law of (W', W): so the kernel is reversible, whatever the scale."""
    walk = StiefelProposal(scaling=0.7, reflect=0.3)
    state, layout = walk.init(layout_of((n, p))), (n, p)
    pairs = []
    for _ in range(8_000):
        before = uniform(n, p, rng)
        after = walk.propose(state, before.ravel(), rng)[0].reshape(layout)
        pairs.append((before, after))
    before, after = np.array(pairs).swapaxes(0, 1)
    f, g = (lambda w: np.exp(w[:, 0, 0] - w[:, 2, 1])), (lambda w: w[:, 1, 0] ** 3)
    difference = f(before) * g(after) - f(after) * g(before)
    assert np.corrcoef(g(before), g(after))[0, 1] > 0.2  # the pairs do depend on each other
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(8_000)
    assert stats.kstest(after[:, 0, 0] ** 2, stats.beta(0.5, (n - 1) / 2).cdf).pvalue > 1e-4


def test_angles_have_the_given_size(rng):
    """In two dimensions the angle of the rotation is the normal number itself."""
    walk = StiefelProposal(scaling=0.2, reflect=0.0)
    state = walk.init(layout_of((2, 1)))
    points = np.array([walk.propose(state, np.array([1.0, 0.0]), rng)[0] for _ in range(4_000)])
    angles = np.arctan2(points[:, 1], points[:, 0])
    assert stats.kstest(angles, stats.norm(0.0, 0.2).cdf).pvalue > 1e-4


def test_square_matrices_are_reflected_in_a_share_of_the_moves(rng):
    walk = StiefelProposal(reflect=0.25)
    state = walk.init(layout_of((2, 3, 3)))
    point = np.broadcast_to(np.eye(3), (2, 3, 3)).ravel()
    columns = []
    for _ in range(2_000):
        new, _, state = walk.propose(state, point, rng)
        new = new.reshape(2, 3, 3)
        reflected = np.linalg.det(new) < 0
        assert state.reflected == reflected.any()
        columns += [w.diagonal().argmin() for w in new[reflected]]
    assert abs(len(columns) / 4_000 - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4_000)
    assert stats.chisquare(np.bincount(columns, minlength=3)).pvalue > 1e-4


@pytest.mark.parametrize("concentration", [3.0, 3e5])
def test_finds_the_usual_acceptance(concentration, rng):
    """Three dimensions: 0.337. The reflections, all rejected here, do not count."""
    target = uniform(3, 3, np.random.default_rng(1))
    target *= np.sign(np.linalg.det(target))
    walk = StiefelProposal()
    about = (lambda q: concentration * q @ target.ravel()), np.eye(3).ravel(), 2_000, rng
    state, after = chain_on_a_density(walk, walk.init(layout_of((3, 3))), *about)
    rotations = [accepted for each, accepted in after if not each.reflected]
    assert abs(np.mean(rotations) - 0.337) < 0.08
    assert walk.current_scaling(state) == state.search.scale


def test_starts_are_dispersed_on_the_manifold(rng):
    layout = layout_of((3, 3), (4, 2))
    point = np.concatenate([np.eye(3).ravel(), np.eye(4, 2).ravel()])
    walk = StiefelProposal(scaling=1e-6)
    starts = np.array([walk.disperse(layout, point, 1.0, rng) for _ in range(50)])
    assert distance_from_manifold(starts[:, :9].reshape(50, 3, 3)) < 1e-13
    assert distance_from_manifold(starts[:, 9:].reshape(50, 4, 2)) < 1e-13
    assert (starts.std(axis=0) > 0.1).all()
    near = walk.disperse(layout, point, 1e-3, rng)
    assert 0.0 < np.abs(near - point).max() < 0.01


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout.continuous(4), "this point"),
        (Layout(np.zeros(4, dtype=int), (Block("mu", (2, 2), 0),)), "'mu'.*UniformStiefel"),
    ],
)
def test_other_variables_are_refused(layout, words):
    with pytest.raises(SettingError, match=words):
        StiefelProposal().init(layout)
