"""Priors of coefficients that can be out of a model: which are in it, and their values."""

import math
from numbers import Integral
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    SymbolicRandomVariable,
    change_dist_size,
    check_dist_not_registered,
    implicit_size_from_params,
    support_point,
)
from pymc_austerity.errors import SettingError, SettingTypeError


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
        if isinstance(n, bool) or not isinstance(n, Integral):
            raise SettingTypeError(
                f"n={n!r} is not a number of coefficients: give an integer of at least 1."
            )
        if n < 1:
            raise SettingError(f"n={n} is too small: give an integer of at least 1.")
        try:
            log_weights = pm.logp(n_active, np.arange(int(n) + 1))
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
            pm.Uniform.dist(0.0, 1.0, shape=int(n)),
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
