"""Coefficients that are exactly zero if they are not in the model."""

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

__all__ = ["SpikeAndSlab", "SpikeAndSlabRV"]


class SpikeAndSlabRV(SymbolicRandomVariable):
    """Draws of the slab where the indicator is 1 and zeros elsewhere, as a PyTensor variable."""

    extended_signature = "(),()->()"
    _print_name = ("SpikeAndSlab", "\\operatorname{SpikeAndSlab}")

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
    >>> from pymc_austerity.variable_selection import SpikeAndSlab
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
