"""Arrays without rows whose entries are affine functions of the parameters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_MOST_PRODUCTS = 4_000_000


class TooLargeError(Exception):
    """A linear map has too many numbers to be spelled out."""


@dataclass(frozen=True, eq=False)
class Affine:
    """Entry j of the raveled array is ``matrix[j] @ theta + constant[j]``.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array.
    matrix : scipy.sparse.csr_matrix, shape (entries, size)
        Coefficients.
    constant : float array, shape (entries,)
        Constants.
    """

    shape: tuple[int, ...]
    matrix: sparse.csr_matrix
    constant: NDArray[np.float64]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Number of every entry, in the shape of the array."""
        return np.arange(self.constant.size).reshape(self.shape)

    def take(self, numbers: NDArray[np.int64]) -> "Affine":
        """The array of the entries with these numbers."""
        chosen = np.ravel(numbers)
        return Affine(numbers.shape, self.matrix[chosen], self.constant[chosen])

    def broadcast(self, shape: tuple[int, ...]) -> "Affine":
        """The same entries, repeated as NumPy does."""
        return self if shape == self.shape else self.take(np.broadcast_to(self.numbers, shape))


def parameter(start: int, shape: tuple[int, ...], size: int) -> Affine:
    """Make the array of consecutive entries of the raveled vector.

    Examples
    --------
    >>> parameter(1, (2,), 4).matrix.toarray()
    array([[0., 1., 0., 0.],
           [0., 0., 1., 0.]])
    """
    n = int(np.prod(shape, dtype=int))
    entries = (np.ones(n), np.arange(start, start + n), np.arange(n + 1))
    return Affine(shape, sparse.csr_matrix(entries, shape=(n, size)), np.zeros(n))


def fixed(values: NDArray, size: int) -> Affine:
    """Make an array of constants."""
    matrix = sparse.csr_matrix((values.size, size))
    return Affine(values.shape, matrix, np.ravel(values).astype(np.float64))


def added(arrays: Sequence[Affine]) -> Affine:
    """Sum of arrays of one shape."""
    matrix = sum((a.matrix for a in arrays[1:]), start=arrays[0].matrix)
    constant = np.sum([a.constant for a in arrays], axis=0)
    return Affine(arrays[0].shape, matrix.tocsr(), constant)


def scaled(array: Affine, by: NDArray, shape: tuple[int, ...]) -> Affine:
    """Product of an array with constants, broadcast to a shape."""
    whole, factors = array.broadcast(shape), np.ravel(np.broadcast_to(by, shape)).astype(float)
    return Affine(shape, (sparse.diags(factors) @ whole.matrix).tocsr(), factors * whole.constant)


def summed(array: Affine, axes: tuple[int, ...]) -> Affine:
    """Sum over axes."""
    shape = tuple(n for axis, n in enumerate(array.shape) if axis not in axes)
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(array.shape))
    into = np.broadcast_to(np.arange(int(np.prod(shape, dtype=int))).reshape(kept), array.shape)
    return _combined(array, shape, into, array.numbers, np.ones(array.shape))


def cumulated(array: Affine, axis: int) -> Affine:
    """Cumulative sum along an axis.

    Raises
    ------
    TooLargeError
        There would be millions of numbers to add up.
    """
    along = np.moveaxis(array.numbers, axis, 0)
    later, earlier = np.tril_indices(along.shape[0])
    if later.size * np.prod(along.shape[1:], dtype=float) > _MOST_PRODUCTS:
        raise TooLargeError
    into, numbers = along[later], along[earlier]
    return _combined(array, array.shape, into, numbers, np.ones(into.shape))


def product(constants: NDArray, array: Affine, *, left: bool) -> Affine:
    """Matrix product with constants that stand on the left or on the right of the array.

    Raises
    ------
    TooLargeError
        There would be millions of products to add up.
    """
    c, numbers = constants, array.numbers
    first, second = (c, numbers) if left else (numbers, c)
    a = first[None, :] if first.ndim == 1 else first
    b = second[:, None] if second.ndim == 1 else second
    a, b = a[..., :, :, None], b[..., None, :, :]
    whole = np.broadcast_shapes(a.shape, b.shape)  # (..., i, k, j)
    if np.prod(whole, dtype=float) > _MOST_PRODUCTS:
        raise TooLargeError
    out = (*whole[:-2], whole[-1])
    into = np.arange(int(np.prod(out, dtype=int))).reshape(out)[..., :, None, :]
    spread = [np.broadcast_to(x, whole) for x in (into, b if left else a, a if left else b)]
    shape = np.matmul(np.zeros(first.shape), np.zeros(second.shape)).shape
    return _combined(array, shape, *spread)


def stacked(arrays: Sequence[Affine]) -> Affine:
    """All entries of some arrays one after the other."""
    matrix = sparse.vstack([a.matrix for a in arrays], format="csr")
    constant = np.concatenate([a.constant for a in arrays])
    return Affine(constant.shape, matrix, constant)


def as_affine(part: "Affine | NDArray", size: int) -> Affine:
    """An array as it is, or an array of constants."""
    return part if isinstance(part, Affine) else fixed(np.asarray(part), size)


def _combined(
    array: Affine, shape: tuple[int, ...], into: NDArray, numbers: NDArray, weights: NDArray
) -> Affine:
    """Add weighted entries up to those of another array."""
    n = int(np.prod(shape, dtype=int))
    where = (np.ravel(into), np.ravel(numbers))
    sums = sparse.csr_matrix(
        (np.ravel(weights).astype(float), where), shape=(n, array.constant.size)
    )
    return Affine(shape, (sums @ array.matrix).tocsr(), sums @ array.constant)
