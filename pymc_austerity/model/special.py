"""Special functions in terms of operations that every backend compiles."""

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt

from pymc_austerity._pymc import Elemwise, TriGamma, Variable, clone_replace, toposort

__all__ = ["expand_trigamma", "trigamma"]

_SHIFT = 10
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66)


def trigamma(x: Any) -> Any:
    r"""Second derivative of the log of the gamma function, for positive arguments.

    .. math::
        \psi'(x) = \sum_{k=0}^{9} \frac{1}{(x + k)^2}
        + \frac{1}{z} + \frac{1}{2 z^2} + \sum_{j=1}^{5} \frac{B_{2j}}{z^{2j+1}}, \quad z = x + 10

    The relative error is below 1e-13. Numba would call SciPy through Python for every element.

    Parameters
    ----------
    x : tensor variable
        Positive; elsewhere the result is NaN.

    References
    ----------
    Abramowitz, M. and Stegun, I. A. (1964). Handbook of Mathematical Functions, 6.4.6 and 6.4.12.

    Examples
    --------
    >>> import numpy as np
    >>> value = trigamma(pt.constant(1.0, dtype="float64")).eval()
    >>> bool(np.isclose(value, np.pi**2 / 6, rtol=1e-12))
    True
    """
    z = x + _SHIFT
    tail = 1 / z + 0.5 / z**2
    for j, bernoulli in enumerate(_BERNOULLI, start=1):
        tail = tail + bernoulli / z ** (2 * j + 1)
    terms = [1 / (x + k) ** 2 for k in range(_SHIFT)]
    return pt.switch(x > 0, pt.add(*terms, tail), float("nan"))


def expand_trigamma(outputs: Sequence[Variable]) -> list[Variable]:
    """Replace PyTensor's trigamma, which second derivatives of gamma functions bring in."""
    replacements = {
        node.outputs[0]: trigamma(node.inputs[0]).astype(node.outputs[0].dtype)
        for node in toposort(list(outputs))
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, TriGamma)
    }
    if not replacements:
        return list(outputs)
    return list(clone_replace(list(outputs), replacements, rebuild_strict=False))
