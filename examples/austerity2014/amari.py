"""The Amari distance: how far two unmixing matrices are from meaning the same sources."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def amari_distance(found: Floats, true: Floats) -> Floats:
    r"""Amari distance of unmixing matrices from the true one, in [0, 1].

    With :math:`P = V W^{-1}`, where V and W are the matrices with rows scaled to length 1,

    .. math::
        \frac{1}{2 m (m - 1)} \left[
        \sum_i \left(\frac{\sum_j |p_{ij}|}{\max_j |p_{ij}|} - 1\right) +
        \sum_j \left(\frac{\sum_i |p_{ij}|}{\max_i |p_{ij}|} - 1\right) \right]

    It is 0 where V finds the sources of W, in whatever order, with whatever signs and scales.

    Parameters
    ----------
    found : float array, shape (..., m, m)
        Unmixing matrices, a source in each row: the sources of a vector x are ``found @ x``.
    true : float array, shape (m, m)
        The matrix that unmixes.

    Returns
    -------
    float array, shape (...,)

    References
    ----------
    Amari, S., Cichocki, A. and Yang, H. H. (1996). A new learning algorithm for blind signal
    separation. NIPS 8, 757-763: the sum in brackets. Scaled to [0, 1] as in the R packages JADE
    and coloredICA.

    Examples
    --------
    >>> import numpy as np
    >>> angle = 0.1
    >>> rotation = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    >>> bool(np.isclose(amari_distance(np.array(rotation), np.eye(2)), np.tan(angle)))
    True
    """
    product = np.abs(_of_length_one(found) @ np.linalg.inv(_of_length_one(true)))
    excess = [
        (product.sum(axis=axis) / product.max(axis=axis) - 1.0).sum(axis=-1) for axis in (-1, -2)
    ]
    m = product.shape[-1]
    total: Floats = (excess[0] + excess[1]) / (2 * m * (m - 1))
    return total


def _of_length_one(rows: Floats) -> Floats:
    scaled: Floats = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return scaled
