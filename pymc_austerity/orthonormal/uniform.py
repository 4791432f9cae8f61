"""The uniform distribution of matrices with orthonormal columns."""

import math
from numbers import Integral
from typing import Any

import pymc as pm
import pytensor.tensor as pt

from pymc_austerity._pymc import SymbolicRandomVariable, change_dist_size
from pymc_austerity.errors import SettingError, SettingTypeError

__all__ = ["UniformStiefel", "UniformStiefelRV"]


class UniformStiefelRV(SymbolicRandomVariable):
    """The orthonormal factor of a matrix of standard normal numbers, as a PyTensor variable."""

    extended_signature = "(n,p)->(n,p)"
    _print_name = ("UniformStiefel", "\\operatorname{UniformStiefel}")

    @classmethod
    def rv_op(cls, normal: Any, *, size: Any = None) -> Any:
        """Build the variable from the normal one."""
        if size is not None:
            normal = change_dist_size(normal, (*size, *normal.shape[-2:]))
        q, r = pt.linalg.qr(normal, mode="economic")
        # with a positive diagonal of r the factors are unique, and q has no preferred signs
        signs = pt.sign(pt.diagonal(r, axis1=-2, axis2=-1))
        return cls(inputs=[normal], outputs=[q * signs[..., None, :]])(normal)


class UniformStiefel(pm.Continuous):
    r"""Uniform distribution on the Stiefel manifold, the matrices with orthonormal columns.

    .. math:: \{W \in \mathbb{R}^{n \times p} : W'W = I_p\}, \qquad p \le n

    The distribution does not change when :math:`W` is multiplied by an orthogonal matrix from
    either side. With :math:`p = n`, these are all orthogonal matrices, of both determinants; with
    :math:`p = 1`, it is the unit sphere. The log-density, with respect to the surface (Hausdorff)
    measure in :math:`\mathbb{R}^{n \times p}`, is minus the logarithm of the area

    .. math:: 2^{p (p - 1) / 4} \, 2^p \pi^{np/2} / \Gamma_p(n/2)

    on the manifold and minus infinity off it. For another density on the manifold, add a
    ``pm.Potential`` to this prior.

    Parameters
    ----------
    n : int
        Number of rows.
    p : int, optional
        Number of columns, at most `n`; by default `n`.

    Raises
    ------
    SettingError, SettingTypeError
        The numbers of rows and columns cannot be used.

    Notes
    -----
    The variable has no unconstrained form: NUTS and other samplers of PyMC cannot update it. Sample
    it with ``AusterityMH(vars=["W"], proposal=StiefelProposal())``.

    References
    ----------
    Muirhead, R. J. (1982). Aspects of Multivariate Statistical Theory, theorem 2.1.15. (Its
    measure is that of the surface without the factor ``2**(p (p - 1) / 4)``.)
    Mezzadri, F. (2007). How to generate random matrices from the classical compact groups.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from pymc_austerity.orthonormal import UniformStiefel
    >>> with pm.Model():
    ...     W = UniformStiefel("W", n=4, p=2)
    >>> draw = pm.draw(W, random_seed=1)
    >>> draw.shape, bool(np.allclose(draw.T @ draw, np.eye(2)))
    ((4, 2), True)
    """

    rv_type = UniformStiefelRV
    rv_op = UniformStiefelRV.rv_op

    @classmethod
    def dist(cls, n: int, p: int | None = None, **kwargs: Any) -> Any:
        """Create the variable without a model."""
        n = _checked("n", n)
        p = n if p is None else _checked("p", p)
        if p > n:
            raise SettingError(
                f"p={p} columns cannot be orthonormal in n={n} dimensions: give p of at most n."
            )
        return super().dist([pm.Normal.dist(0.0, 1.0, shape=(n, p))], **kwargs)

    def support_point(rv: Any, normal: Any) -> Any:
        """Ones on the diagonal, zeros elsewhere."""
        return pt.zeros(rv.shape) + pt.eye(*rv.shape[-2:])

    def logp(value: Any, normal: Any) -> Any:
        """Minus the logarithm of the area of the manifold; minus infinity off it."""
        n, p = value.shape[-2:]
        gram = pt.swapaxes(value, -1, -2) @ value
        tolerance = 1e-6 if value.dtype == "float64" else 1e-3
        distance = pt.max(pt.abs(gram - pt.eye(p)), axis=(-2, -1))
        return pt.switch(pt.lt(distance, tolerance), -_log_area(n, p), -math.inf)

    def change_dist_size(rv: Any, new_size: Any, expand: bool) -> Any:
        """Resize the variable, for PyMC."""
        (normal,) = rv.owner.inputs
        size = (*new_size, *rv.shape[:-2]) if expand else tuple(new_size)
        return UniformStiefelRV.rv_op(normal, size=size)


def _log_area(n: Any, p: Any) -> Any:
    log_multigamma = p * (p - 1) / 4 * math.log(math.pi) + pt.sum(
        pt.gammaln((n - pt.arange(p)) / 2)
    )
    log_two = (p * (p - 1) / 4 + p) * math.log(2.0)
    return log_two + n * p / 2 * math.log(math.pi) - log_multigamma


def _checked(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SettingTypeError(
            f"{name}={value!r} is not a size of the matrix: give an integer of at least 1."
        )
    if value < 1:
        raise SettingError(f"{name}={value} is too small: give an integer of at least 1.")
    return int(value)
