"""Gradients and Hessians of every row by finite differences, and the Taylor terms made of them."""

import itertools

import numpy as np

# central differences of fourth order: error h^4 times the fifth derivative
_PLACES = np.array([-2, -1, 1, 2])
_WEIGHTS = np.array([1, -8, 8, -1]) / 12


def gradients(function, point, step=1e-3):
    """First derivatives of a vector-valued function, shape (n, d)."""
    columns = []
    for axis in np.eye(point.size):
        values = [function(point + place * step * axis) for place in _PLACES]
        columns.append(np.tensordot(_WEIGHTS, values, axes=1) / step)
    return np.stack(columns, axis=-1)


def hessians(function, point, step=3e-3):
    """Second derivatives of a vector-valued function, shape (n, d, d)."""
    d = point.size
    result = np.empty((np.size(function(point)), d, d))
    for j, k in itertools.combinations_with_replacement(range(d), 2):
        total = 0.0
        for (a, wa), (b, wb) in itertools.product(zip(_PLACES, _WEIGHTS, strict=True), repeat=2):
            moved = point.copy()
            moved[j] += a * step
            moved[k] += b * step
            total = total + wa * wb * function(moved)
        result[:, j, k] = result[:, k, j] = total / step**2
    return result


def taylor_differences(gradient, hessian, anchor, proposed, current, order=2):
    """Expansion at one point minus that at another, term by term, shape (n,)."""

    def expansion(point):
        away = point - anchor
        first = gradient @ away
        if order == 1:
            return first
        return first + np.einsum("j,njk,k->n", away, hessian, away) / 2

    return expansion(proposed) - expansion(current)
