"""Selection of variables: priors of coefficients that may be out, and jumps between models."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from pymc_austerity._pymc import (
    SymbolicRandomVariable,
    change_dist_size,
    check_dist_not_registered,
    implicit_size_from_params,
    support_point,
)
from pymc_austerity.arguments import checked_count, checked_positive, checked_rate
from pymc_austerity.errors import SettingError, SettingTypeError
from pymc_austerity.proposals.adaptation import ScaleSearch
from pymc_austerity.proposals.protocols import GaussianApproximation, Layout, Outcome


class InclusionIndicatorsRV(SymbolicRandomVariable):
    """Draws of a number and of an order of the coefficients, as a PyTensor variable."""

    extended_signature = "(),(n),(k)->(n)"
    _print_name = ("InclusionIndicators", "\\operatorname{InclusionIndicators}")

    @classmethod
    def rv_op(cls, n_active: Any, order: Any, log_weights: Any, *, size: Any = None) -> Any:
        """Build the variable from its parts: the first ones in a random order are in."""
        if size is not None:
            n_active = change_dist_size(n_active, size)
            order = change_dist_size(order, (*size, order.shape[-1]))
        rank = pt.argsort(order, axis=-1)
        value = pt.cast(pt.lt(rank, n_active[..., None]), "int64")
        inputs = [n_active, order, log_weights]
        return cls(inputs=inputs, outputs=[value])(*inputs)


class InclusionIndicators(pm.Discrete):
    r"""Which of `n` coefficients are in a model: a prior on their number, all choices alike.

    .. math:: p(\gamma) = p(k) \Big/ \binom{n}{k}, \qquad k = \sum_j \gamma_j

    Parameters
    ----------
    n : int
        Number of coefficients, in the model or not.
    n_active : unnamed distribution
        Number of coefficients in the model: any discrete univariate distribution, made with
        ``.dist()``. It is truncated to 0, ..., n. ``pm.Poisson.dist(mu)`` gives the right-truncated
        Poisson prior of Korattikara, Chen and Welling (2014, section 6.3).

    Raises
    ------
    SettingError, SettingTypeError
        An argument cannot be used.

    See Also
    --------
    SpikeAndSlab : The coefficients.

    Notes
    -----
    ``pm.Bernoulli("gamma", 0.2, shape=n)`` is the prior under which coefficients are in the model
    independently of each other.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_austerity.paper import InclusionIndicators
    >>> gamma = InclusionIndicators.dist(10, pm.Poisson.dist(2.0))
    >>> pm.draw(gamma, random_seed=1).shape
    (10,)
    """

    rv_type = InclusionIndicatorsRV
    rv_op = InclusionIndicatorsRV.rv_op

    @classmethod
    def dist(cls, n: int, n_active: Any, **kwargs: Any) -> Any:
        """Create the variable without a model."""
        n = checked_count("n", n, what="a number of coefficients")
        try:
            log_weights = pm.logp(n_active, np.arange(n + 1))
        except (AttributeError, NotImplementedError, TypeError) as error:
            raise SettingTypeError(
                f"n_active of type {type(n_active).__name__} is not a distribution of a number: "
                "give one made with .dist(), e.g. pm.Poisson.dist(2)."
            ) from error
        if log_weights.ndim != 1:
            raise SettingError(
                f"n_active has {log_weights.ndim} axes where its log-probabilities of 0, ..., n "
                "should be a vector: give a univariate distribution, e.g. pm.Poisson.dist(2)."
            )
        parts = [
            pm.Categorical.dist(logit_p=log_weights),
            pm.Uniform.dist(0.0, 1.0, shape=n),
            log_weights,
        ]
        return super().dist(parts, **kwargs)

    def support_point(rv: Any, n_active: Any, order: Any, log_weights: Any) -> Any:
        """The most probable number of coefficients, the first ones."""
        first = pt.lt(pt.arange(rv.shape[-1]), pt.argmax(log_weights))
        return pt.cast(pt.zeros(rv.shape, dtype="int64") + first, "int64")

    def logp(value: Any, n_active: Any, order: Any, log_weights: Any) -> Any:
        """Log-probability of the number minus the log of the number of choices."""
        n = value.shape[-1]
        k = pt.sum(value, axis=-1)
        normalized = log_weights - pt.logsumexp(log_weights)
        log_choices = pt.gammaln(n + 1) - pt.gammaln(k + 1) - pt.gammaln(n - k + 1)
        sizes = pt.arange(log_weights.shape[-1])
        log_size = pt.max(pt.switch(pt.eq(sizes, k[..., None]), normalized, -math.inf), axis=-1)
        binary = pt.all(pt.or_(pt.eq(value, 0), pt.eq(value, 1)), axis=-1)
        return pt.switch(binary, log_size - log_choices, -math.inf)

    def change_dist_size(rv: Any, new_size: Any, expand: bool) -> Any:
        """Resize the variable, for PyMC."""
        size = (*new_size, *rv.shape[:-1]) if expand else tuple(new_size)
        return InclusionIndicatorsRV.rv_op(*rv.owner.inputs, size=size)


class SpikeAndSlabRV(SymbolicRandomVariable):
    """Draws of the slab where the indicator is 1 and zeros elsewhere, as a PyTensor variable."""

    extended_signature = "(),()->()"
    _print_name = ("SpikeAndSlab", "\\operatorname{SpikeAndSlab}")
    special_moves = (
        "coefficients that are exactly zero, which the default proposals would not keep: move it "
        "together with its indicators, with AusterityMH(proposal=ReversibleJumpProposal({name!r}, "
        "...))."
    )

    @classmethod
    def rv_op(cls, inclusion: Any, slab: Any, *, size: Any = None) -> Any:
        """Build the variable from its parts."""
        inclusion = pt.as_tensor(inclusion)
        if size is None:
            size = implicit_size_from_params(inclusion, slab, ndims_params=[0, 0])
        slab = change_dist_size(slab, size)
        value = pt.switch(pt.neq(inclusion, 0), slab, pt.zeros_like(slab))
        return cls(inputs=[inclusion, slab], outputs=[value])(inclusion, slab)


class SpikeAndSlab(pm.Distribution):
    r"""Coefficients with a point mass at zero: the slab where the indicator is 1, 0 elsewhere.

    .. math:: \beta_j \mid \gamma_j = 1 \sim \text{slab}, \qquad \beta_j \mid \gamma_j = 0 \; = 0

    The log-density is that of the slab for coefficients in the model. The others contribute
    nothing if they are 0 and minus infinity if they are not.

    Parameters
    ----------
    inclusion : tensor_like of int
        :math:`\gamma`, 1 for the coefficients in the model and 0 for the others: an
        `InclusionIndicators` or ``pm.Bernoulli`` variable.
    slab : unnamed distribution
        Any continuous univariate distribution, made with ``.dist()``: ``pm.Laplace.dist(0, 1)``
        or ``pm.Normal.dist(0, 1)``. Its parameters may be variables of the model.

    Raises
    ------
    SettingError, SettingTypeError
        The slab cannot be used.

    See Also
    --------
    InclusionIndicators : A prior for `inclusion`.

    Notes
    -----
    Neither NUTS nor a random walk can make a coefficient zero. Sample it together with its
    indicators with ``AusterityMH(vars=["beta", "gamma"], proposal=ReversibleJumpProposal("beta",
    "gamma"))``.

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_austerity.paper import SpikeAndSlab
    >>> beta = SpikeAndSlab.dist([1, 0, 1], pm.Laplace.dist(0.0, 1.0))
    >>> (pm.draw(beta, random_seed=1) != 0).tolist()
    [True, False, True]
    """

    rv_type = SpikeAndSlabRV
    rv_op = SpikeAndSlabRV.rv_op

    @classmethod
    def dist(cls, inclusion: Any, slab: Any, **kwargs: Any) -> Any:
        """Create the variable without a model."""
        operation = getattr(getattr(slab, "owner", None), "op", None)
        if operation is None or getattr(operation, "ndim_supp", None) is None:
            raise SettingTypeError(
                f"slab of type {type(slab).__name__} is not a distribution: give one made with "
                ".dist(), e.g. pm.Laplace.dist(0, 1)."
            )
        if operation.ndim_supp or "float" not in slab.dtype:
            raise SettingError(
                "slab is not a continuous univariate distribution: give one such as "
                "pm.Laplace.dist(0, 1) or pm.Normal.dist(0, 1)."
            )
        check_dist_not_registered(slab)
        return super().dist([inclusion, slab], **kwargs)

    def support_point(rv: Any, inclusion: Any, slab: Any) -> Any:
        """The support point of the slab, for coefficients in the model."""
        return pt.switch(pt.neq(inclusion, 0), support_point(slab), 0.0) + pt.zeros(rv.shape)

    def logp(value: Any, inclusion: Any, slab: Any) -> Any:
        """Log-density of the slab for coefficients in the model, nothing for zeros that are not."""
        spike = pt.switch(pt.eq(value, 0.0), 0.0, -np.inf)
        return pt.switch(pt.neq(inclusion, 0), pm.logp(slab, value), spike)

    def change_dist_size(rv: Any, new_size: Any, expand: bool) -> Any:
        """Resize the variable, for PyMC."""
        inclusion, slab = rv.owner.inputs
        new_size = (*new_size, *rv.shape) if expand else new_size
        return SpikeAndSlabRV.rv_op(inclusion, slab, size=new_size)


_SHARE_OF_WIDE = 0.2
_LONG_ENOUGH_FOR_MOMENTS = 100
_WIDENING = 1.5
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_LONG_ENOUGH = 30


@dataclass(frozen=True, eq=False)
class Births:
    """Distributions of new coefficients: a wide normal mixed with a narrow one.

    Four draws out of five come from the narrow one. For a coefficient that was in the model for
    100 tuning steps or more, it has the mean and 1.5 times the standard deviation of its values;
    for others, its mean is 0 and its standard deviation a usual step of the random walk, which is
    about twice the width of their posterior. The wide one keeps the tails from being too light (a
    defensive mixture; Hesterberg 1995).

    Attributes
    ----------
    wide : float
        Standard deviation of the wide normal, about 0.
    usual_step : float
        Standard deviation of a usual step; 0 if none is known, in which case all draws are from the
        wide normal.
    n_steps : int array, shape (n,)
        Tuning steps for which each coefficient was in the model.
    means, variances : float arrays, shape (n,)
        Moments of its values during these steps, with weights that grow with the cube of the number
        of the step, so that the way to the posterior does not count as spread.
    """

    wide: float
    usual_step: float
    n_steps: NDArray[np.int64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]

    @classmethod
    def begin(cls, n_coefficients: int, wide: float) -> "Births":
        """Initial state, before anything is learned."""
        zeros = np.zeros(n_coefficients)
        return cls(wide, 0.0, zeros.astype(np.int64), zeros, zeros)

    def learn(
        self, active: NDArray[np.int64], values: NDArray, usual_step: float | None = None
    ) -> "Births":
        """The distributions after one more step, with these values in the model.

        `usual_step` is the new one; by default it stays.
        """
        n_steps, means, variances = self.n_steps.copy(), self.means.copy(), self.variances.copy()
        n_steps[active] += 1
        weights = 4.0 / (n_steps[active] + 3)
        distances = values - means[active]
        means[active] += weights * distances
        rest = distances * (values - means[active])
        variances[active] += weights * (rest - variances[active])
        step = self.usual_step if usual_step is None else usual_step
        return Births(self.wide, step, n_steps, means, variances)

    def draw(self, j: int, rng: np.random.Generator) -> float:
        """Value of a new coefficient."""
        normal = rng.standard_normal()
        mean, sd = self._narrow(j)
        if sd == 0.0 or rng.random() < _SHARE_OF_WIDE:
            return self.wide * normal
        return mean + sd * normal

    def log_density(self, j: int, value: float) -> float:
        """Log-density of what `draw` returns, nats."""
        log_wide = _log_normal(value, self.wide)
        mean, sd = self._narrow(j)
        if sd == 0.0:
            return log_wide
        log_narrow = _log_normal(value - mean, sd)
        parts = (log_wide + math.log(_SHARE_OF_WIDE), log_narrow + math.log1p(-_SHARE_OF_WIDE))
        return float(np.logaddexp(*parts))

    def _narrow(self, j: int) -> tuple[float, float]:
        """Mean and standard deviation."""
        if self.n_steps[j] >= _LONG_ENOUGH_FOR_MOMENTS and self.variances[j] > 0.0:
            return float(self.means[j]), _WIDENING * math.sqrt(self.variances[j])
        return 0.0, self.usual_step


def _log_normal(distance: float, sd: float) -> float:
    return -0.5 * (distance / sd) ** 2 - math.log(sd) - _LOG_ROOT_TWO_PI


def _find_selection(
    layout: Layout, coefficients: str, inclusion: str
) -> tuple[slice, slice, NDArray[np.int64]]:
    """Entries of the coefficients, of their indicators, and all others.

    Parameters
    ----------
    layout : Layout
        Of the variables of a step method.
    coefficients, inclusion : str
        Names of two of them.

    Raises
    ------
    SettingError
        They are not there or do not belong together, or others are not real numbers.
    """
    blocks, kinds = {block.name: block for block in layout.blocks}, layout.n_categories
    for name in (coefficients, inclusion):
        if name not in blocks:
            raise SettingError(
                f"{name!r} is not among the variables of this step method "
                f"({', '.join(map(repr, blocks))}): ReversibleJumpProposal moves coefficients and "
                f"indicators together; give both with vars=[...]."
            )
    values, indicators = blocks[coefficients], blocks[inclusion]
    if values.shape != indicators.shape:
        raise SettingError(
            f"{inclusion!r} has shape {indicators.shape} and {coefficients!r} {values.shape}: give "
            "one indicator for each coefficient."
        )
    if kinds[values.entries].any() or not kinds[indicators.entries].all():
        raise SettingError(
            f"{coefficients!r} must be real and {inclusion!r} an integer variable of zeros and "
            "ones: name the coefficients first, then the indicators."
        )
    is_other = np.ones(layout.n_entries, dtype=bool)
    is_other[values.entries] = is_other[indicators.entries] = False
    others = np.flatnonzero(is_other)
    if kinds[others].any() or any(block.orthonormal for block in layout.blocks):
        raise SettingError(
            "ReversibleJumpProposal moves coefficients, indicators and real variables only: give "
            "the other variables to another step method in pm.sample(step=[...])."
        )
    return values.entries, indicators.entries, others


class ReversibleJumpState(NamedTuple):
    """State of the moves.

    Attributes
    ----------
    coefficients, inclusion : slice
        Their positions in the point.
    others : int array
        Other entries of the point, which update moves change too.
    searches : tuple of ScaleSearch
        Standard deviation of the update moves of each coefficient, then of the others.
    births : Births
        Distributions of new coefficients.
    updated : int
        Position in `searches` of the last update move; -1 after another move.
    scale : float
        Standard deviation of the latest update move.
    """

    coefficients: slice
    inclusion: slice
    others: NDArray[np.int64]
    searches: tuple[ScaleSearch, ...]
    births: Births
    updated: int
    scale: float


@dataclass(frozen=True)
class ReversibleJumpProposal:
    r"""Update, birth and death moves on coefficients that can be out of the model.

    With probability `jump_share`, the move is a birth or a death, otherwise an update. Half of the
    jumps are births; all of them if no coefficient is in the model, and none if all are.

    - A birth draws one of the coefficients that are out, and its value from a mixture of a wide
      and a narrow normal distribution, with density :math:`g_j`.
    - A death sets one of the coefficients that are in to zero.
    - An update adds a normal step to one of the coefficients that are in, or to an entry of the
      other variables of the step method.

    With :math:`k` of :math:`n` coefficients in the model, the log-ratio of a birth is

    .. math:: \log \frac{p_d(k + 1) / (k + 1)}{p_b(k) \, g_j(\beta_j) / (n - k)}

    and that of the death that undoes it is its negative; an update is symmetric. The Jacobian is 1.
    During tuning, the step of each coefficient is adapted to the usual acceptance rate in
    one dimension, and the narrow normal distribution of its births is learned.

    Parameters
    ----------
    coefficients : str
        Name of the variable with the coefficients, which are zero if not in the model: a
        `SpikeAndSlab`, or another distribution with this support.
    inclusion : str
        Name of the variable of the same shape that is 1 for coefficients in the model and 0 for
        the others: `InclusionIndicators` or ``pm.Bernoulli``.
    scaling : float
        Initial standard deviation of the update moves, in units of the coefficients.
    birth_scale : float
        Standard deviation of the wide normal distribution of new coefficients, about 0; all of
        them are drawn from it until something has been learned.
    jump_share : float
        Share of births and deaths, in (0, 1).
    target_acceptance : float
        Acceptance rate to which the update moves are tuned.

    Raises
    ------
    SettingError
        A setting cannot be used.

    References
    ----------
    Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model
    determination. Biometrika 82(4), 711-732.
    Korattikara, A., Chen, Y. and Welling, M. (2014). Austerity in MCMC Land, section 6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from pymc_austerity.proposals import Block, Layout
    >>> from pymc_austerity.paper import ReversibleJumpProposal
    >>> layout = Layout(np.array([0, 0, 2, 2]), (Block("beta", (2,), 0), Block("gamma", (2,), 2)))
    >>> jump = ReversibleJumpProposal("beta", "gamma", jump_share=0.9)
    >>> point, log_ratio, state = jump.propose(
    ...     jump.init(layout), np.array([0.0, 3.0, 0.0, 1.0]), np.random.default_rng(2)
    ... )
    >>> point.round(2), round(log_ratio, 2)
    (array([-0.52,  3.  ,  1.  ,  1.  ]), 1.06)
    """

    coefficients: str
    inclusion: str
    scaling: float = 0.1
    birth_scale: float = 1.0
    jump_share: float = 0.5
    target_acceptance: float = 0.44

    unconstrained: ClassVar[bool] = False
    """No normal approximation fits the coordinates in which this proposal moves."""

    def __post_init__(self) -> None:
        for name in ("coefficients", "inclusion"):
            if not isinstance(getattr(self, name), str):
                raise SettingTypeError(
                    f"{name}={getattr(self, name)!r} is not a name: give that of a variable of the "
                    "model, as in ReversibleJumpProposal('beta', 'gamma')."
                )
        if self.coefficients == self.inclusion:
            raise SettingError(
                f"{self.inclusion!r} cannot be both the coefficients and their indicators: name "
                "two variables."
            )
        for name in ("scaling", "birth_scale"):
            checked_positive(name, getattr(self, name), "a size")
        for name in ("jump_share", "target_acceptance"):
            checked_rate(name, getattr(self, name), "a share of the moves")

    def check_model(self, model: pm.Model) -> None:
        """Refuse coefficients with a density, which would count while they are not in the model.

        Raises
        ------
        SettingError
            Names the variable and the prior to use.
        """
        named = {rv.name: rv for rv in model.free_RVs}
        coefficients = named.get(self.coefficients)
        if coefficients is not None and not isinstance(coefficients.owner.op, SpikeAndSlabRV):
            raise SettingError(
                f"{coefficients.name!r} has no point mass at zero, so that models of different "
                "sizes cannot be compared: give it a SpikeAndSlab prior, "
                f"pymc_austerity.paper.SpikeAndSlab({coefficients.name!r}, "
                f"{self.inclusion}, slab)."
            )

    def init(
        self, layout: Layout, approximation: GaussianApproximation | None = None
    ) -> ReversibleJumpState:
        """Initial state, with the positions of coefficients and indicators."""
        coefficients, inclusion, others = _find_selection(layout, self.coefficients, self.inclusion)
        n_coefficients = coefficients.stop - coefficients.start
        return ReversibleJumpState(
            coefficients,
            inclusion,
            others,
            (ScaleSearch.begin(self.scaling),) * (n_coefficients + others.size),
            Births.begin(n_coefficients, self.birth_scale),
            updated=-1,
            scale=self.scaling,
        )

    def propose(
        self, state: ReversibleJumpState, point: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray, float, ReversibleJumpState]:
        """New point, the log-ratio, and which entry was updated."""
        included = point[state.inclusion] > 0.5
        inside, outside = np.flatnonzero(included), np.flatnonzero(~included)
        birth, death = self._jumps(state, inside.size)
        uniform = rng.random()
        new = point.copy()
        state = state._replace(updated=-1)
        if uniform < birth:
            j = int(outside[rng.integers(outside.size)])
            _place(state, new, j, 1, state.births.draw(j, rng))
            return new, self._log_birth_ratio(state, new, inside.size, j), state
        if uniform < birth + death:
            j = int(inside[rng.integers(inside.size)])
            _place(state, new, j, 0, 0.0)
            return new, -self._log_birth_ratio(state, point, inside.size - 1, j), state
        return new, 0.0, _update(state, new, inside, rng)

    def _jumps(self, state: ReversibleJumpState, n_inside: int) -> tuple[float, float]:
        """Probabilities of a birth and of a death."""
        if n_inside == 0:
            return (self.jump_share if state.others.size else 1.0), 0.0
        if n_inside == state.births.means.size:
            return 0.0, self.jump_share
        return self.jump_share / 2, self.jump_share / 2

    def _log_birth_ratio(
        self, state: ReversibleJumpState, larger: NDArray, n_before: int, j: int
    ) -> float:
        birth, _ = self._jumps(state, n_before)
        _, death = self._jumps(state, n_before + 1)
        n_outside = state.births.means.size - n_before
        log_density = state.births.log_density(j, float(larger[state.coefficients][j]))
        log_forth = math.log(birth / n_outside) + log_density
        return math.log(death / (n_before + 1)) - log_forth

    def disperse(
        self, layout: Layout, point: NDArray, radius: float, rng: np.random.Generator
    ) -> NDArray:
        """Start of a chain: indicators changed at random, real entries moved within `radius`."""
        state = self.init(layout)
        moved = point + rng.uniform(-radius, radius, size=point.size)
        flipped = rng.random(state.births.means.size) < radius / 4.0
        included = (point[state.inclusion] > 0.5) ^ flipped
        moved[state.inclusion] = included
        moved[state.coefficients] *= included
        return moved

    def tune(self, state: ReversibleJumpState, outcome: Outcome) -> ReversibleJumpState:
        """Learn the step of the coefficient that was updated, and moments of the coefficients."""
        updated, searches, usual_step = state.updated, state.searches, None
        if updated >= 0:
            search = searches[updated].step(outcome.accepted, self.target_acceptance)
            searches = (*searches[:updated], search, *searches[updated + 1 :])
            if updated < state.births.means.size and search.n_steps >= _LONG_ENOUGH:
                usual_step = search.scale
        inside = np.flatnonzero(outcome.following[state.inclusion] > 0.5)
        values = outcome.following[state.coefficients][inside]
        births = state.births.learn(inside, values, usual_step)
        return state._replace(searches=searches, births=births)

    def freeze(self, state: ReversibleJumpState) -> ReversibleJumpState:
        """Average steps, and no more learning; the usual step if too little was learned."""
        coefficients = state.searches[: state.births.means.size]
        learnt = [x.mean_log_scale for x in coefficients if x.n_steps >= _LONG_ENOUGH]
        usual_step = math.exp(float(np.median(learnt))) if learnt else self.scaling
        searches = tuple(
            search.end() if search.n_steps >= _LONG_ENOUGH else ScaleSearch.begin(usual_step)
            for search in state.searches
        )
        births = replace(state.births, usual_step=usual_step if learnt else 0.0)
        return state._replace(searches=searches, births=births)

    def current_scaling(self, state: ReversibleJumpState) -> float:
        """Standard deviation of the latest update move."""
        return state.scale


def _place(state: ReversibleJumpState, point: NDArray, j: int, included: int, value: float) -> None:
    point[state.inclusion.start + j] = included
    point[state.coefficients.start + j] = value


def _update(
    state: ReversibleJumpState, point: NDArray, inside: NDArray, rng: np.random.Generator
) -> ReversibleJumpState:
    """Move one of the entries that can be moved, in place, and record it in the state."""
    chosen = int(rng.integers(inside.size + state.others.size))
    if chosen < inside.size:
        updated = int(inside[chosen])
        entry = state.coefficients.start + updated
    else:
        other = chosen - inside.size
        updated = state.births.means.size + other
        entry = int(state.others[other])
    scale = state.searches[updated].scale
    point[entry] += scale * rng.standard_normal()
    return state._replace(updated=updated, scale=scale)
