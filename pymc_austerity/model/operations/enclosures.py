"""How scalar operations enclose their result, from enclosures of their arguments."""

from collections.abc import Callable, Sequence
from functools import cache, reduce
from math import comb, factorial, pi, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy import special

from pymc_austerity.model.operations import jets
from pymc_austerity.model.operations.jets import Interval, Jet, hull, point, values_of, zero_of

_SAME = 1e-9
"""Difference of Taylor coefficients, as a share of the largest one, up to which two formulas are
the same function."""


class NoRuleError(Exception):
    """An operation has no rule."""


class Enclosed(NamedTuple):
    """The enclosure of one variable of the graph.

    Attributes
    ----------
    center : Jet
        Its Taylor coefficients at the center of the box.
    box : Jet
        Enclosures of its Taylor coefficients anywhere in the box.
    """

    center: Jet
    box: Jet


Rule = Callable[[list[Enclosed], int], Enclosed]


def each(function: Callable[[Jet], Jet], x: Enclosed) -> Enclosed:
    """Apply a function to center and box."""
    center = function(x.center)
    return Enclosed(center, center if x.box is x.center else function(x.box))


def of_jets(rule: Callable[[list[Jet], int], Jet]) -> Rule:
    """Apply a rule for jets to centers and boxes alike."""

    def apply(inputs: list[Enclosed], order: int) -> Enclosed:
        center = rule([x.center for x in inputs], order)
        if all(x.center is x.box for x in inputs):
            return Enclosed(center, center)
        return Enclosed(center, rule([x.box for x in inputs], order))

    return apply


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


def _over(f: Callable, x: Interval, extrema: Sequence[float] = ()) -> Interval:
    """Enclosure of f over an interval from its ends and from the extrema inside."""
    result = hull(*map(f, x.ends))
    for place in () if x.is_point else extrema:
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
        inner = _over(v, x)
        found = [] if f is None else [_over(f, x)]
        for n in range(order + 1 - len(found)):
            polynomial = _chain(first, rate, n)
            found.append(_over(polynomial, inner, _extrema(tuple(polynomial.coef))))
        return found

    return derivatives


def _where(is_inside: Callable[[Interval], NDArray], derivatives: Derivatives) -> Derivatives:
    """The same where the interval is inside of a domain, NaN elsewhere."""

    def checked(x: Interval, order: int) -> list[Interval]:
        known = np.where(is_inside(x), 0.0, np.nan)
        return derivatives(x.each(lambda end: end + known), order)

    return checked


def _is_positive(x: Interval) -> NDArray:
    return x.lower > 0.0


def _is_negative(x: Interval) -> NDArray:
    return x.upper < 0.0


def _reciprocal(x: NDArray) -> NDArray:
    return 1.0 / x


def _log_one_minus_exp(x: NDArray) -> NDArray:
    return np.where(x > -0.693, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


exp = _polynomials_in(np.exp, (0, 1), (0, 1))
expm1 = _polynomials_in(np.exp, (0, 1), (0, 1), np.expm1)
sigmoid = _polynomials_in(special.expit, (0, 1, -1), (0, 1))
softplus = _polynomials_in(special.expit, (0, 1, -1), (0, 1), lambda x: np.logaddexp(0.0, x))
tanh = _polynomials_in(np.tanh, (1, 0, -1), (0, 1))
log = _where(_is_positive, _polynomials_in(_reciprocal, (0, 0, -1), (0, 1), np.log))
log1mexp = _where(
    _is_negative,
    _polynomials_in(lambda x: -1.0 / np.expm1(x), (0, -1, 1), (1, -1), _log_one_minus_exp),
)
reciprocal = _where(
    lambda x: _is_positive(x) | _is_negative(x),
    _polynomials_in(_reciprocal, (0, 0, -1), (0, 1)),
)


def log1p(x: Interval, order: int) -> list[Interval]:
    """log(1 + x), for x > -1."""
    return [_over(np.log1p, x), *log(x.each(lambda end: 1.0 + end), order)[1:]]


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
        found.append(jets.scale(_over(derivative, x, tuple(1.0 / np.tan(angles))), factor))
    return found


# ------------------------------------------------------------------------------------- powers


def power(exponent: float) -> Derivatives:
    """X to a fixed exponent: for positive x, or for all x where it is a small natural number."""
    if exponent in range(9):
        monomial = (0.0,) * int(exponent) + (1.0,)
        return _polynomials_in(lambda x: x, (1.0,), monomial)

    def derivatives(x: Interval, order: int) -> list[Interval]:
        found, factor = [], 1.0
        for n in range(order + 1):
            found.append(jets.scale(_over(lambda y, n=n: y ** (exponent - n), x), factor))
            factor *= exponent - n
        return found

    return _where(_is_positive, derivatives)


sqrt_ = power(0.5)


# ---------------------------------------------------------------------------- the error function


def _hermite(n: int) -> tuple[Callable, tuple[float, ...]]:
    """(-1)^n H_n(x) exp(-x^2), the n-th derivative of exp(-x^2), and its extrema."""
    sign, roots = (-1.0) ** n, special.roots_hermite(n + 1)[0]
    polynomial = np.polynomial.hermite.Hermite.basis(n)
    return lambda x: sign * polynomial(x) * np.exp(-x * x), tuple(map(float, roots))


def _error_function(f: Callable, factor: float) -> Derivatives:
    def derivatives(x: Interval, order: int) -> list[Interval]:
        rest = [
            jets.scale(_over(g, x, extrema), factor) for g, extrema in map(_hermite, range(order))
        ]
        return [_over(f, x), *rest]

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
    return [_over(lambda y, n=n: _erfcx_derivative(y, n), x) for n in range(order + 1)]


# ----------------------------------------------------------------------- gamma and trigonometric

_MINIMUM_OF_GAMMALN = 1.4616321449683623


def _gammaln(x: Interval, order: int) -> list[Interval]:
    """Every derivative is monotone."""
    derivatives = [_over(lambda y, n=n: special.polygamma(n, y), x) for n in range(order)]
    return [_over(special.gammaln, x, (_MINIMUM_OF_GAMMALN,)), *derivatives]


gammaln = _where(_is_positive, _gammaln)


def _gamma(x: Interval, order: int) -> list[Interval]:
    """Each derivative is one of the product of the function and the slope of its logarithm."""
    found = [_over(special.gamma, x, (_MINIMUM_OF_GAMMALN,))]
    _, *slopes = _gammaln(x, order)
    for n in range(order):  # by the rule of Leibniz
        products = (jets.multiply(found[k], slopes[n - k]) for k in range(n + 1))
        terms = (jets.scale(product, float(comb(n, k))) for k, product in enumerate(products))
        found.append(reduce(jets.add, terms))
    return found


gamma = _where(_is_positive, _gamma)


def psi(x: Interval, order: int) -> list[Interval]:
    """Digamma function, for positive x."""
    return gammaln(x, order + 1)[1:]


def _cos(x: Interval, quarter: int) -> Interval:
    """cos(x + quarter * pi / 2)."""
    shifted = x.each(lambda end: end + quarter * pi / 2)
    values = _over(np.cos, shifted)
    if x.is_point:
        return values

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


# -------------------------------------------------------------------------------- arithmetic


def of_function(derivatives: Derivatives) -> Rule:
    """Rule of a function of one argument, from enclosures of its derivatives."""
    return of_jets(lambda inputs, order: applied(derivatives, inputs[0], order))


def applied(derivatives: Derivatives, x: Jet, order: int) -> Jet:
    """Jet of a function of one argument."""
    return jets.compose(x, derivatives(values_of(x), order))


@of_jets
def total(inputs: list[Jet], order: int) -> Jet:
    """Sum of all arguments."""
    return reduce(jets.jet_sum, inputs)


@of_jets
def difference(inputs: list[Jet], order: int) -> Jet:
    """The first argument less the second."""
    return jets.jet_sum(inputs[0], jets.jet_times(inputs[1], -1.0))


@of_jets
def product_of(inputs: list[Jet], order: int) -> Jet:
    """Product of all arguments; of one with itself, a power."""
    factors = []
    for key, factor in {id(x): x for x in inputs}.items():
        times = sum(id(x) == key for x in inputs)
        factors.append(factor if times == 1 else applied(power(times), factor, order))
    return reduce(lambda a, b: jets.cauchy_product(a, b, order), factors)


@of_jets
def quotient(inputs: list[Jet], order: int) -> Jet:
    """The first argument over the second."""
    above, below = inputs
    return jets.cauchy_product(above, applied(reciprocal, below, order), order)


@of_jets
def power_of(inputs: list[Jet], order: int) -> Jet:
    """The first argument to the power of the second."""
    base, exponent = inputs
    if len(exponent) == 1 and np.array_equal(*values_of(exponent)):
        given = np.unique(values_of(exponent).lower)
        if given.size == 1:
            return applied(power(float(given[0])), base, order)
    inner = jets.cauchy_product(exponent, applied(log, base, order), order)
    return applied(exp, inner, order)


# -------------------------------------------------------------------------------- conditions


def _as_condition(certain: NDArray, possible: NDArray, like: Jet) -> Jet:
    return {zero_of(like): Interval(certain.astype(float), possible.astype(float))}


def _comparison(rule: Callable[[Interval, Interval], tuple[Any, Any]]) -> Rule:
    """Truth values from certainly and possibly true; NaN makes a condition possible only."""

    def apply(inputs: list[Jet], order: int) -> Jet:
        a, b = map(values_of, inputs)
        certain, impossible = rule(a, b)
        return _as_condition(np.asarray(certain), ~np.asarray(impossible), inputs[0])

    return of_jets(apply)


def _is_equal(a: Interval, b: Interval) -> tuple[Any, Any]:
    certain = (a.lower == a.upper) & (b.lower == b.upper) & (a.lower == b.lower)
    return certain, (a.upper < b.lower) | (a.lower > b.upper)


@of_jets
def is_infinite(inputs: list[Jet], order: int) -> Jet:
    """Whether a number is infinite or NaN, which is possible where an end is."""
    x = values_of(inputs[0])
    finite = np.isfinite(x.lower) & np.isfinite(x.upper)
    return _as_condition(np.zeros_like(finite), ~finite, inputs[0])


@of_jets
def negation(inputs: list[Jet], order: int) -> Jet:
    """Whether a condition does not hold."""
    yes, no = _truth(values_of(inputs[0]))
    return _as_condition(no, ~yes, inputs[0])


def _and(a: Interval, b: Interval) -> tuple[Any, Any]:
    (yes, no), (also, neither) = _truth(a), _truth(b)
    return yes & also, no | neither


def _or(a: Interval, b: Interval) -> tuple[Any, Any]:
    (yes, no), (also, neither) = _truth(a), _truth(b)
    return yes | also, no & neither


# -------------------------------------------------------------------------------- choices


def _truth(condition: Interval) -> tuple[NDArray, NDArray]:
    """Where a condition certainly holds, and where it certainly does not."""
    yes = (condition.lower > 0.0) | (condition.upper < 0.0)
    return yes, (condition.lower == 0.0) & (condition.upper == 0.0)


def _entry(jet: Jet, m: jets.MultiIndex) -> Interval:
    return jet.get(m) or point(np.zeros(()))


def _agree(a: Jet, b: Jet) -> NDArray:
    """Whether two formulas have the same Taylor coefficients, and so are the same function."""
    pairs = [(_entry(a, m).lower, _entry(b, m).lower) for m in a.keys() | b.keys()]
    largest = reduce(np.maximum, [abs(x) for pair in pairs for x in pair])
    return reduce(np.logical_and, [abs(x - y) <= _SAME * largest for x, y in pairs])


def _intersection(x: Interval, y: Interval) -> Interval:
    """What both allow for; NaN where they contradict each other by more than rounding."""
    lower, upper = np.fmax(x.lower, y.lower), np.fmin(x.upper, y.upper)
    apart = lower - upper
    is_rounding = apart <= _SAME * (abs(lower) + abs(upper))
    ends = np.fmin(lower, upper), np.fmax(lower, upper)
    return Interval(*(np.where((apart > 0.0) & ~is_rounding, np.nan, end) for end in ends))


def _pick(yes: NDArray, no: NDArray, same: NDArray, a: Jet, b: Jet) -> Jet:
    """One of two functions, either where they are the same, and NaN where neither is certain."""
    picked = {}
    for m in a.keys() | b.keys():
        x, y = _entry(a, m), _entry(b, m)
        both = _intersection(x, y) if np.any(same) else point(np.asarray(np.nan))
        ends = [
            np.where(yes, p, np.where(no, q, np.where(same, r, np.nan)))
            for p, q, r in zip(x, y, both, strict=True)
        ]
        picked[m] = point(ends[0]) if x.is_point and y.is_point else Interval(*ends)
    return picked


def switch(inputs: list[Enclosed], order: int) -> Enclosed:
    """Choice by a condition that need not be the same all over the box.

    Formulas for different ranges of one smooth function have the same Taylor coefficients: either
    may be used. Otherwise a kink or step may lie in the box.
    """
    condition, a, b = inputs
    here, anywhere = values_of(condition.center), values_of(condition.box)
    yes, no = _truth(here)
    center = _pick(yes, no, np.asarray(False), a.center, b.center)
    if all(x.center is x.box for x in inputs):
        return Enclosed(center, center)
    yes, no = _truth(anywhere)
    return Enclosed(center, _pick(yes, no, _agree(a.center, b.center), a.box, b.box))


greater_equal = _comparison(lambda a, b: (a.lower >= b.upper, a.upper < b.lower))
greater = _comparison(lambda a, b: (a.lower > b.upper, a.upper <= b.lower))
less_equal = _comparison(lambda a, b: (a.upper <= b.lower, a.lower > b.upper))
less = _comparison(lambda a, b: (a.upper < b.lower, a.lower >= b.upper))
equal = _comparison(_is_equal)
not_equal = _comparison(lambda a, b: _is_equal(a, b)[::-1])
both = _comparison(_and)
either = _comparison(_or)


def first(inputs: list[Enclosed], order: int) -> Enclosed:
    """The first argument."""
    return inputs[0]


def second(inputs: list[Enclosed], order: int) -> Enclosed:
    """The second argument."""
    return inputs[1]


def maximum(inputs: list[Enclosed], order: int) -> Enclosed:
    """The largest argument."""

    def larger(a: Enclosed, b: Enclosed) -> Enclosed:
        return switch([greater_equal([a, b], order), a, b], order)

    return reduce(larger, inputs)


negate = of_jets(lambda inputs, order: jets.jet_times(inputs[0], -1.0))


def minimum(inputs: list[Enclosed], order: int) -> Enclosed:
    """The smallest argument."""
    return negate([maximum([negate([x], order) for x in inputs], order)], order)


def clip(inputs: list[Enclosed], order: int) -> Enclosed:
    """The first argument within the others."""
    x, lower, upper = inputs
    return minimum([maximum([x, lower], order), upper], order)


def absolute(inputs: list[Enclosed], order: int) -> Enclosed:
    """The larger one of x and -x."""
    return maximum([inputs[0], negate(inputs, order)], order)


def step_function(f: Callable[[NDArray], NDArray]) -> Rule:
    """Piecewise constant: known where the box lies in one piece."""

    def rule(inputs: list[Jet], order: int) -> Jet:
        a, b = map(f, values_of(inputs[0]))
        return {zero_of(inputs[0]): point(np.where(a == b, a, np.nan))}

    return of_jets(rule)
