"""Sequential tests of many sums at once, and the rows that they draw."""

import numpy as np
import pytest
from scipy import stats

from pymc_austerity.compiled import Owners, SequentialSettings, decide_each
from pymc_austerity.compiled.owners import chances
from pymc_austerity.strata import first_of_permutation

SIZES = np.array([3_000, 450, 0, 1_700, 5_000])
STARTS = np.concatenate([[0], np.cumsum(SIZES)])
N = STARTS[-1]
RNG = np.random.default_rng(1)
POSITIONS = RNG.permutation(N)
VALUES = RNG.gamma(2.0, size=N)
LEVELS = np.array([0, 1, 3, 4])


def keys(seed, n):
    return np.random.default_rng(seed).integers(2**63, size=n)


def test_chances_are_uniform_and_independent_of_the_permutation():
    own = keys(3, 20_000)
    found = chances(own)
    assert stats.kstest(found, "uniform").pvalue > 1e-4
    first = [first_of_permutation(1_000, 1, key)[0] for key in own]
    assert stats.pearsonr(found, first).pvalue > 1e-4


def owners(groups, *, together=False):
    return Owners.of(groups, STARTS, POSITIONS, together=together)


def of_level(level):
    return POSITIONS[STARTS[level] : STARTS[level + 1]]


class Recorded:
    """Residuals of rows, which knows what was read."""

    def __init__(self, values=VALUES):
        self.values, self.looks = values, []

    def __call__(self, rows):
        self.looks.append(rows.copy())
        return self.values[rows]


def decided(populations, thresholds, epsilon, audit=0.0, seed=2, values=VALUES):
    """Thresholds are those of means."""
    read = Recorded(values)
    settings = SequentialSettings(epsilon, audit)
    rng = np.random.default_rng(seed)
    return decide_each(populations, read, thresholds * populations.sizes, settings, rng), read


def test_a_look_is_the_t_test_of_scipy():
    thresholds = np.array([2.7, 2.5, 2.6, 2.4])  # above the means, where rejections are clear
    verdicts, read = decided(owners(LEVELS), thresholds, 0.4999)
    (rows,) = read.looks
    for k, sample in enumerate(np.split(rows, LEVELS.size)):
        assert np.isin(sample, of_level(LEVELS[k])).all()
        assert np.unique(sample).size == 200
        n, size = 200, SIZES[LEVELS[k]]
        plain = stats.ttest_1samp(VALUES[sample], thresholds[k])
        t = plain.statistic / np.sqrt(1.0 - (n - 1) / (size - 1))
        np.testing.assert_allclose(verdicts.errors[k], stats.t.sf(abs(t), n - 1), rtol=1e-9)
        np.testing.assert_allclose(verdicts.totals[k], size * VALUES[sample].mean())
        assert verdicts.above[k] == (VALUES[sample].mean() > thresholds[k])
    assert verdicts.n_rows == 800


def test_later_looks_have_all_rows_so_far():
    threshold = np.array([VALUES[of_level(4)].mean() + 0.12])
    verdicts, read = decided(owners(np.array([4])), threshold, 1e-4)
    assert [look.size for look in read.looks] == [200, 200, 400, 800, 1_600, 1_800][
        : len(read.looks)
    ]
    assert len(read.looks) > 2
    rows = np.concatenate(read.looks)
    assert np.unique(rows).size == rows.size == verdicts.n_rows
    assert rows.size < 5_000
    t = stats.ttest_1samp(VALUES[rows], threshold[0]).statistic
    t /= np.sqrt(1.0 - (rows.size - 1) / 4_999)
    np.testing.assert_allclose(verdicts.errors[0], stats.t.sf(abs(t), rows.size - 1), rtol=1e-8)


@pytest.mark.parametrize("aside", [-1e-9, 1e-9])
def test_close_decisions_read_all_rows_and_are_right(aside):
    exact = np.array([VALUES[of_level(level)].mean() for level in LEVELS])
    verdicts, read = decided(owners(LEVELS), exact + aside, 1e-9)
    assert (verdicts.above == (aside < 0.0)).all()
    assert (verdicts.errors == 0.0).all()
    assert verdicts.n_rows == SIZES.sum()
    assert np.array_equal(np.sort(np.concatenate(read.looks)), np.arange(N))


def test_rows_that_are_all_alike_do_not_stop_a_test():
    """One row in 200 has a residual: a look at 200 rows often has none of them."""
    values = np.zeros(N)
    values[of_level(0)[::200]] = 10.0
    threshold = np.array([0.5 * values[of_level(0)].mean()])
    n_alike = 0
    for seed in range(60):
        about = {"seed": seed, "values": values}
        verdicts, read = decided(owners(np.array([0])), threshold, 0.05, **about)
        assert values[np.concatenate(read.looks)].std() > 0.0
        assert (verdicts.errors[0] == 0.0) == (verdicts.n_rows == 3_000)
        n_alike += values[read.looks[0]].std() == 0.0
    assert n_alike > 5


def test_one_test_about_several_levels():
    levels = np.array([0, 3])
    rows = np.concatenate([of_level(0), of_level(3)])
    populations = owners(levels, together=True)
    assert populations.sizes.tolist() == [4_700]
    verdicts, read = decided(populations, np.array([VALUES[rows].mean() + 1e-9]), 1e-9)
    assert not verdicts.above[0]
    assert np.array_equal(np.sort(np.concatenate(read.looks)), np.sort(rows))
    _, read = decided(populations, np.array([10.0]), 0.01)
    assert np.isin(read.looks[0], rows).all()


def test_an_audit_reads_the_rest():
    thresholds = np.array([VALUES[of_level(level)].mean() - 0.05 for level in LEVELS])
    n_wrong = n_audited = 0
    for seed in range(40):
        verdicts, read = decided(owners(LEVELS), thresholds, 0.3, 1.0, seed)
        assert np.array_equal(np.sort(np.concatenate(read.looks)), np.arange(N))
        assert verdicts.n_wrong == (~verdicts.above).sum()  # the means are above the thresholds
        n_wrong += verdicts.n_wrong
        n_audited += verdicts.n_audited
    assert n_audited == 160
    assert n_wrong > 0


def test_a_verdict_above_keeps_small_acceptance_probabilities():
    """Acceptance probability exp(-6), and uniform numbers that are not as small."""
    values = VALUES / 1_000.0
    mean, size = values[of_level(4)].mean(), SIZES[4]
    levels, n_above, n_tests = np.full(1_000, 4), 0, 40_000
    uniform = np.random.default_rng(5)
    for seed in range(n_tests // levels.size):
        thresholds = mean + (6.0 - uniform.exponential(size=levels.size)) / size
        verdicts, _ = decided(owners(levels), thresholds, 0.05, seed=seed, values=values)
        n_above += verdicts.above.sum()
    expected = n_tests * np.exp(-6.0)
    assert abs(n_above - expected) <= 0.1 * expected + 4.0 * np.sqrt(expected)
    assert verdicts.n_rows < 0.5 * levels.size * size


def test_an_audit_changes_nothing_else():
    thresholds = np.array([VALUES[of_level(level)].mean() + 0.02 for level in LEVELS])
    states = []
    for audit in (0.0, 0.5):
        rng = np.random.default_rng(3)
        settings = SequentialSettings(0.05, audit)
        sums = thresholds * SIZES[LEVELS]
        found = decide_each(owners(LEVELS), Recorded(), sums, settings, rng)
        states.append((found.totals.tolist(), found.n_rows, rng.random()))
    assert states[0] == states[1]


def test_wrong_decisions_are_as_rare_as_their_looks_allow():
    levels, epsilon = np.array([0, 3, 4]), 0.05
    exact = np.array([VALUES[of_level(level)].mean() for level in levels])
    wrong, n_looks, n = 0, 0, 0
    for seed in range(400):
        away = np.where(np.random.default_rng(seed).random(3) < 0.5, -0.1, 0.1)
        verdicts, read = decided(owners(levels), exact - away, epsilon, seed=seed)
        wrong += (verdicts.above != (away > 0.0)).sum()
        n_looks += sum(look.size > 0 for look in read.looks)
        n += 3
    assert wrong / n <= epsilon * n_looks / 400 + 4.0 * np.sqrt(epsilon / n)


@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_an_impossible_row_that_is_read_decides(value):
    about = {"values": np.full(N, value)}
    verdicts, _ = decided(owners(np.array([0])), np.array([-1e9]), 0.05, **about)
    assert not verdicts.above[0]
    assert verdicts.n_rows == 200


def test_tests_are_the_same_in_python(monkeypatch):
    thresholds = np.array([VALUES[of_level(level)].mean() + 0.05 for level in LEVELS])
    compiled, _ = decided(owners(LEVELS), thresholds, 0.05)
    monkeypatch.setattr("pymc_austerity.compiled.owners.address_of_tail", lambda: None)
    python, _ = decided(owners(LEVELS), thresholds, 0.05)
    np.testing.assert_array_equal(python.above, compiled.above)
    np.testing.assert_allclose(python.errors, compiled.errors, rtol=1e-9)
    np.testing.assert_allclose(python.totals, compiled.totals, rtol=1e-12)
    assert python.n_rows == compiled.n_rows
