"""Enclosures of scalar functions of one argument and of their derivatives over intervals."""

from collections.abc import Callable, Sequence
from functools import cache
from math import factorial, pi, sqrt
from typing import TypeAlias

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy import special

from pymc_austerity.model.operations.jets import Interval, hull, negate, point, scale

Derivatives: TypeAlias = Callable[[Interval, int], list[Interval]]
"""From an interval and an order n to enclosures of the function and its first n derivatives."""


# --------------------------------------------- derivatives that are polynomials in one function


@cache
def _chain(first: tuple[float, ...], rate: tuple[float, ...], n: int) -> Polynomial:
    """n-th derivative of ``first(v)`` where v' = ``rate(v)``, as a polynomial in v."""
    derivative = Polynomial(first)
    for _ in range(n):
        derivative = derivative.deriv() * Polynomial(rate)
    return derivative


@cache
def _extrema(polynomial: tuple[float, ...]) -> tuple[float, ...]:
    """Where a polynomial may have an extremum on the real line."""
    slope = Polynomial(polynomial).deriv().trim()
    if slope.degree() < 1:
        return ()
    roots = slope.roots()
    return tuple(float(r) for r in roots.real[abs(roots.imag) < 1e-6])


def _over(f: Callable, x: Interval, extrema: Sequence[float]) -> Interval:
    """Enclosure of f over an interval from its ends and from the extrema inside."""
    if x.is_point:
        return point(f(x.lower))
    result = hull(f(x.lower), f(x.upper))
    for place in extrema:
        inside = (x.lower < place) & (place < x.upper)
        if inside.any():
            value = f(np.float64(place))
            result = Interval(
                np.where(inside, np.minimum(result.lower, value), result.lower),
                np.where(inside, np.maximum(result.upper, value), result.upper),
            )
    return result


def _polynomials_in(
    v: Callable, rate: tuple[float, ...], first: tuple[float, ...], f: Callable | None = None
) -> Derivatives:
    """Function with f = first(v), or with f' = first(v) where f is given; v is monotone."""

    def derivatives(x: Interval, order: int) -> list[Interval]:
        inner = point(v(x.lower)) if x.is_point else hull(v(x.lower), v(x.upper))
        found = [] if f is None else [_over(f, x, ())]
        for n in range(order + 1 - len(found)):
            polynomial = _chain(first, rate, n)
            found.append(_over(polynomial, inner, _extrema(tuple(polynomial.coef))))
        return found

    return derivatives


def _where_positive(derivatives: Derivatives) -> Derivatives:
    """The same where the interval is positive, NaN elsewhere."""

    def checked(x: Interval, order: int) -> list[Interval]:
        positive = np.where(x.lower > 0.0, x.lower, np.nan)
        inside = point(positive) if x.is_point else Interval(positive, positive * 0.0 + x.upper)
        return derivatives(inside, order)

    return checked


def _reciprocal(x: NDArray) -> NDArray:
    return 1.0 / x


exp = _polynomials_in(np.exp, (0, 1), (0, 1))
expm1 = _polynomials_in(np.exp, (0, 1), (0, 1), np.expm1)
sigmoid = _polynomials_in(special.expit, (0, 1, -1), (0, 1))
softplus = _polynomials_in(special.expit, (0, 1, -1), (0, 1), lambda x: np.logaddexp(0.0, x))
tanh = _polynomials_in(np.tanh, (1, 0, -1), (0, 1))
log = _where_positive(_polynomials_in(_reciprocal, (0, 0, -1), (0, 1), np.log))
_positive_reciprocal = _where_positive(_polynomials_in(_reciprocal, (0, 0, -1), (0, 1)))


def log1p(x: Interval, order: int) -> list[Interval]:
    """log(1 + x), for x > -1."""
    shifted = point(1.0 + x.lower) if x.is_point else Interval(1.0 + x.lower, 1.0 + x.upper)
    return [_over(np.log1p, x, ()), *log(shifted, order)[1:]]


def log1p_of_square(x: Interval, order: int) -> list[Interval]:
    r"""log(1 + x^2).

    .. math::
        \frac{d^n}{dx^n} \log(1 + x^2) = 2 (-1)^{n-1} (n - 1)! \sin^n t \cos(n t), \quad x = \cot t

    with extrema where :math:`\cos((n + 1) t) = 0`.
    """
    found = [_over(lambda y: np.log1p(y * y), x, (0.0,))]
    for n in range(1, order + 1):
        angles = (np.arange(n + 1) + 0.5) * pi / (n + 1)

        def derivative(y: NDArray, n: int = n) -> NDArray:
            angle = np.arctan2(1.0, y)
            return np.sin(angle) ** n * np.cos(n * angle)

        factor = 2.0 * (-1.0) ** (n - 1) * factorial(n - 1)
        found.append(scale(_over(derivative, x, tuple(1.0 / np.tan(angles))), factor))
    return found


def log1mexp(x: Interval, order: int) -> list[Interval]:
    """log(1 - exp(x)), for x < 0: polynomials in v = 1 / (1 - exp(x))."""
    negative = np.where(x.upper < 0.0, x.upper, np.nan)
    lower = np.where(np.isnan(negative), np.nan, x.lower)
    inside = point(negative) if x.is_point else Interval(lower, negative)
    return _log1mexp(inside, order)


def _log_one_minus_exp(x: NDArray) -> NDArray:
    return np.where(x > -0.693, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


_log1mexp = _polynomials_in(lambda x: -1.0 / np.expm1(x), (0, -1, 1), (1, -1), _log_one_minus_exp)


def reciprocal(x: Interval, order: int) -> list[Interval]:
    """1 / x, where the interval does not hold zero."""
    positive = _positive_reciprocal(x, order)
    negative = x.upper < 0.0
    if not negative.any():
        return positive
    mirrored = [
        negate(d) if n % 2 == 0 else d for n, d in enumerate(_positive_reciprocal(negate(x), order))
    ]
    return [
        Interval(np.where(negative, m.lower, p.lower), np.where(negative, m.upper, p.upper))
        for m, p in zip(mirrored, positive, strict=True)
    ]


# ------------------------------------------------------------------------------------- powers


def power(exponent: float) -> Derivatives:
    """X to a fixed exponent: for positive x, or for all x where it is a small natural number."""
    if exponent in range(9):
        monomial = (0.0,) * int(exponent) + (1.0,)
        return _polynomials_in(lambda x: x, (1.0,), monomial)

    def derivatives(x: Interval, order: int) -> list[Interval]:
        found, factor = [], 1.0
        for n in range(order + 1):
            values = _over(lambda y, n=n: y ** (exponent - n), x, ())
            found.append(scale(values, factor))
            factor *= exponent - n
        return found

    return _where_positive(derivatives)


sqrt_ = power(0.5)


# ---------------------------------------------------------------------------- the error function


def _hermite(n: int) -> tuple[Callable, tuple[float, ...]]:
    """(-1)^n H_n(x) exp(-x^2), the n-th derivative of exp(-x^2), and its extrema."""
    sign, roots = (-1.0) ** n, special.roots_hermite(n + 1)[0]
    polynomial = np.polynomial.hermite.Hermite.basis(n)
    return lambda x: sign * polynomial(x) * np.exp(-x * x), tuple(map(float, roots))


def _error_function(f: Callable, factor: float) -> Derivatives:
    def derivatives(x: Interval, order: int) -> list[Interval]:
        rest = [scale(_over(g, x, extrema), factor) for g, extrema in map(_hermite, range(order))]
        return [_over(f, x, ()), *rest]

    return derivatives


erf = _error_function(special.erf, 2.0 / sqrt(pi))
erfc = _error_function(special.erfc, -2.0 / sqrt(pi))


def _erfcx_derivative(x: NDArray, n: int) -> NDArray:
    r"""n-th derivative of exp(x^2) erfc(x).

    .. math:: y^{(n)}(x) = (-1)^n n! U(\tfrac{n + 1}{2}, \tfrac12, x^2) / \sqrt\pi, \quad x \geq 0

    (DLMF 7.18.10); for negative x the recursion :math:`y^{(n+1)} = 2 x y^{(n)} + 2 n y^{(n-1)}`
    adds terms of the same sign.
    """
    if n == 0:
        return special.erfcx(x)
    tail = (-1.0) ** n * factorial(n) / sqrt(pi)
    tail = tail * special.hyperu((n + 1) / 2.0, 0.5, np.maximum(x, 0.0) ** 2)
    if not (x < 0.0).any():
        return tail
    y = np.minimum(x, 0.0)
    before, now = np.zeros_like(y), special.erfcx(y)
    for k in range(n):
        before, now = now, 2.0 * y * now + (2.0 * k * before if k else -2.0 / sqrt(pi))
    return np.where(x < 0.0, now, tail)


def erfcx(x: Interval, order: int) -> list[Interval]:
    """exp(x^2) erfc(x): completely monotone, so that every derivative is monotone."""
    return [_over(lambda y, n=n: _erfcx_derivative(y, n), x, ()) for n in range(order + 1)]


# ----------------------------------------------------------------------- gamma and trigonometric

_MINIMUM_OF_GAMMALN = 1.4616321449683623


def _gammaln(x: Interval, order: int) -> list[Interval]:
    derivatives = [
        _over(lambda y, n=n: special.polygamma(n, y), x, ()) for n in range(order)
    ]  # every one of them is monotone
    return [_over(special.gammaln, x, (_MINIMUM_OF_GAMMALN,)), *derivatives]


gammaln = _where_positive(_gammaln)


def psi(x: Interval, order: int) -> list[Interval]:
    """Digamma function, for positive x."""
    return gammaln(x, order + 1)[1:]


def _cos(x: Interval, quarter: int) -> Interval:
    """cos(x + quarter * pi / 2)."""
    shifted = Interval(x.lower + quarter * pi / 2, x.upper + quarter * pi / 2)
    values = hull(np.cos(shifted.lower), np.cos(shifted.upper))
    if x.is_point:
        return point(values.lower)

    def holds(phase: float) -> NDArray:
        below = np.floor((shifted.upper - phase) / (2 * pi))
        return below >= np.ceil((shifted.lower - phase) / (2 * pi))

    return Interval(
        np.where(holds(pi), -1.0, values.lower), np.where(holds(0.0), 1.0, values.upper)
    )


def cos(x: Interval, order: int) -> list[Interval]:
    """Cosine."""
    return [_cos(x, n) for n in range(order + 1)]


def sin(x: Interval, order: int) -> list[Interval]:
    """Sine."""
    return [_cos(x, n + 3) for n in range(order + 1)]
