import numpy as np
import pytest
from scipy import stats

from pymc_austerity.errors import SettingError
from pymc_austerity.proposals import (
    CrankNicolsonProposal,
    GaussianApproximation,
    Layout,
    Outcome,
    ProposalMixture,
    RandomWalkProposal,
)
from pymc_austerity.proposals.mixture import distances_per_row

N_KINDS = 6  # of the default mixture


def standard_normal(d):
    return lambda x: -0.5 * x @ x, GaussianApproximation(np.zeros(d), np.eye(d))


def student_t(nu, d):
    """Standard t; the approximation has the curvature of the mode."""

    def log_density(x):
        return -0.5 * (nu + d) * np.log1p(x @ x / nu)

    return log_density, GaussianApproximation(np.zeros(d), np.eye(d) * np.sqrt(nu / (nu + d)))


def log_gamma(shape, d):
    """Logarithms of gamma variables: skewed, with an exponential tail on one side."""

    def log_density(x):
        return float(np.sum(shape * x - np.exp(x)))

    mode = np.full(d, np.log(shape))
    return log_density, GaussianApproximation(mode, np.eye(d) / np.sqrt(shape))


def step(mixture, state, log_density, point, rng):
    """One step with an exact decision."""
    new, log_ratio, state = mixture.propose(state, point, rng)
    change = log_density(new) - log_density(point) + log_ratio
    accepted = bool(np.log(rng.random()) < change)
    return (new if accepted else point), accepted, state


def tuned(mixture, target, n_steps, rng, cost=lambda state: 500):
    """State of a chain from the mode, after the given number of tuning steps."""
    log_density, approximation = target
    point = approximation.mean.copy()
    state = mixture.init(Layout.continuous(point.size), approximation)
    for _ in range(n_steps):
        previous = point
        point, accepted, state = step(mixture, state, log_density, point, rng)
        state = mixture.tune(state, Outcome(previous, point, accepted, cost(state)))
        assert state.shares.sum() == pytest.approx(1.0)
        assert state.shares.min() > 0.0
    return state, point


def test_the_independence_sampler_wins_where_the_posterior_is_normal():
    for seed in range(5):
        mixture = ProposalMixture()
        state, _ = tuned(mixture, standard_normal(5), 1_000, np.random.default_rng(seed))
        assert mixture.freeze(state).shares == pytest.approx([0.9, 0, 0, 0, 0, 0.1])


@pytest.mark.parametrize("target", [student_t(3, 10), log_gamma(0.2, 3)], ids=["heavy", "skewed"])
def test_the_independence_sampler_loses_where_it_gets_stuck(target):
    for seed in range(5):
        mixture = ProposalMixture()
        state, _ = tuned(mixture, target, 2_000, np.random.default_rng(seed))
        shares = mixture.freeze(state).shares
        assert shares[0] == 0.0
        assert shares.sum() == pytest.approx(1.0)


def test_rows_are_a_cost():
    """Of two equally good components the one whose decisions are cheap is taken."""
    for cheap in (0, 1):
        mixture = ProposalMixture(
            components=(CrankNicolsonProposal(1.0), CrankNicolsonProposal(1.0)), smallest_share=0.0
        )
        state, _ = tuned(
            mixture,
            standard_normal(3),
            1_000,
            np.random.default_rng(1),
            cost=lambda state, cheap=cheap: 500 if state.chosen == cheap else 50_000,
        )
        np.testing.assert_array_equal(mixture.freeze(state).shares, np.eye(2)[cheap])


def rarely_all(rng, share, components):
    """A cost of a few rows, and a share of decisions by some components that read all rows."""

    def cost(state):
        return 1_000_000 if state.chosen in components and rng.random() < share else 300

    return cost


def test_a_few_decisions_on_all_rows_do_not_choose():
    """Any component may be the one that makes them; each costs as much as thousands of others."""
    for seed in range(10):
        rng, mixture = np.random.default_rng(seed), ProposalMixture()
        cost = rarely_all(np.random.default_rng(seed), 0.004, range(N_KINDS))
        state, _ = tuned(mixture, standard_normal(20), 1_000, rng, cost=cost)
        assert mixture.freeze(state).shares[0] == 0.9


def test_many_decisions_on_all_rows_do():
    for seed in range(5):
        rng, mixture = np.random.default_rng(seed), ProposalMixture()
        cost = rarely_all(np.random.default_rng(seed), 0.2, [0])
        state, _ = tuned(mixture, standard_normal(20), 1_000, rng, cost=cost)
        assert mixture.freeze(state).shares[1] == 0.9


def outcomes_of(pattern, size):
    """Moves of a given size where the pattern says so."""
    here, there = np.zeros(1), np.full(1, float(size))
    return [Outcome(here, there if moved else here, bool(moved), 500) for moved in pattern]


def test_long_waits_count_for_more_than_their_share():
    """Half of the proposals accepted, in turns or in one go: only the latter is stuck for long."""
    mixture = ProposalMixture(
        components=(CrankNicolsonProposal(1.0), CrankNicolsonProposal(0.5)), smallest_share=0.0
    )
    state = mixture.init(Layout.continuous(1), standard_normal(1)[1])
    for outcome, of_the_other in zip(
        outcomes_of([0] * 10 + [1] * 10, 1.0), outcomes_of([0, 1] * 10, 0.8), strict=True
    ):
        for chosen, own in enumerate((outcome, of_the_other)):
            state = mixture.tune(state._replace(chosen=chosen), own)
    # squared distance over mean squared wait over mean wait, by hand
    stuck, steady = distances_per_row(state.efficiencies)
    assert stuck == pytest.approx(1.0 / ((11**2 + 9) / 20) / 800)
    assert steady == pytest.approx(0.64 / (10 * 2**2 / 20) / 800)
    np.testing.assert_array_equal(mixture.freeze(state).shares, [0.0, 1.0])


def test_the_way_to_the_posterior_is_forgotten():
    """The first moves are a hundred times as long as any later ones."""
    mixture = ProposalMixture(
        components=(CrankNicolsonProposal(1.0), RandomWalkProposal()), smallest_share=0.0
    )
    state = mixture.init(Layout.continuous(1), standard_normal(1)[1])
    of_first = outcomes_of([0] * 75 + [1] * 300, 1.0)
    of_second = outcomes_of([1] * 75, 100.0) + outcomes_of([0, 1, 0] * 100, 0.5)
    for both in zip(of_first, of_second, strict=True):
        for chosen, outcome in enumerate(both):
            state = mixture.tune(state._replace(chosen=chosen), outcome)
    np.testing.assert_array_equal(mixture.freeze(state).shares, [1.0, 0.0])


def test_all_are_tried_before_anything_is_known(rng):
    mixture = ProposalMixture()
    _, approximation = standard_normal(2)
    state = mixture.init(Layout.continuous(2), approximation)
    chosen = []
    for _ in range(3_000):
        *_, state = mixture.propose(state, np.zeros(2), rng)
        chosen.append(state.chosen)
    assert stats.chisquare(np.bincount(chosen, minlength=N_KINDS)).pvalue > 1e-4


def test_components_are_chosen_by_their_shares_after_tuning(rng):
    mixture = ProposalMixture(smallest_share=0.25)
    state, point = tuned(mixture, standard_normal(2), 500, rng)
    state, chosen = mixture.freeze(state), []
    for _ in range(3_000):
        *_, state = mixture.propose(state, point, rng)
        chosen.append(state.chosen)
    counts = np.bincount(chosen, minlength=N_KINDS)
    assert (counts[1:-1] == 0).all()
    assert abs(counts[-1] - 750) < 4 * np.sqrt(3_000 * 0.25 * 0.75)


def test_a_chain_that_never_moves_is_left_to_the_last(rng):
    mixture, point = ProposalMixture(), np.zeros(2)
    state = mixture.init(Layout.continuous(2), standard_normal(2)[1])
    for _ in range(300):
        *_, state = mixture.propose(state, point, rng)
        state = mixture.tune(state, Outcome(point, point, False, 500))
    np.testing.assert_array_equal(mixture.freeze(state).shares, np.eye(N_KINDS)[-1])


@pytest.mark.parametrize(
    "proposal",
    [CrankNicolsonProposal(1.0), CrankNicolsonProposal(0.4), ProposalMixture(), "tuned"],
    ids=["independence", "pcn", "untuned", "tuned"],
)
def test_chains_that_start_in_the_posterior_stay_in_it(proposal, rng):
    """Perfect starts: the end of every chain is one more independent draw from the posterior."""
    shape, d, n_chains, n_steps = 0.6, 2, 1_500, 12
    log_density, approximation = log_gamma(shape, d)
    if proposal == "tuned":
        mixture = ProposalMixture(smallest_share=0.3)
        state, _ = tuned(mixture, (log_density, approximation), 1_500, rng)
        proposal, state = mixture, mixture.freeze(state)
    else:
        state = proposal.init(Layout.continuous(d), approximation)
    ends, n_accepted = np.empty((n_chains, d)), 0
    for k in range(n_chains):
        point = np.log(rng.gamma(shape, size=d))
        for _ in range(n_steps):
            point, accepted, state = step(proposal, state, log_density, point, rng)
            n_accepted += accepted
        ends[k] = point
    for entry in range(d):
        assert stats.kstest(np.exp(ends[:, entry]), stats.gamma(shape).cdf).pvalue > 1e-4
    assert abs(stats.spearmanr(ends).statistic) < 4 / np.sqrt(n_chains)
    assert n_accepted > 0.1 * n_chains * n_steps


def test_scaling_is_that_of_the_component_that_moved(rng):
    mixture = ProposalMixture()
    state = mixture.init(Layout.continuous(2), standard_normal(2)[1])
    sizes = [1.0, 0.7, 0.4, 0.2, 0.1, 2.38 / np.sqrt(2)]
    for _ in range(30):
        *_, state = mixture.propose(state, np.zeros(2), rng)
        assert mixture.current_scaling(state) == pytest.approx(sizes[state.chosen])


def test_functions_are_components():
    (component,) = ProposalMixture(components=[lambda point, rng: (point + 1.0, 0.0)]).components
    new, *_ = component.propose(None, np.zeros(2), np.random.default_rng(1))
    assert new.tolist() == [1.0, 1.0]


def test_without_an_approximation_only_what_does_not_need_it():
    with pytest.raises(SettingError, match=r"use RandomWalkProposal\(\)"):
        ProposalMixture().init(Layout.continuous(2))
    walks = ProposalMixture(
        components=(RandomWalkProposal(scaling=0.1), RandomWalkProposal(scaling=1.0))
    )
    state = walks.init(Layout.continuous(2))
    outcome = Outcome(np.zeros(2), np.ones(2), True, 500)
    assert walks.tune(state, outcome).efficiencies[0].travelled == 2.0  # in the units of the point
