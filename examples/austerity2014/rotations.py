"""Moves on rotation matrices about a mode, for exact sampling at full speed."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm, logm

from pymc_austerity.proposals import CrankNicolsonProposal
from pymc_austerity.proposals.protocols import GaussianApproximation

Floats = NDArray[np.float64]

MOVES = (1.0, 0.3)
WIDENING = 1.2


def rotation(angles: Floats) -> Floats:
    """Matrix exponential of the skew matrix with these entries above the diagonal."""
    size = round((1.0 + np.sqrt(1.0 + 8.0 * len(angles))) / 2.0)
    skew = np.zeros((size, size))
    skew[np.triu_indices(size, 1)] = angles
    rotated: Floats = expm(skew - skew.T)
    return rotated


def angles_of(matrix: Floats) -> Floats:
    """What `rotation` makes the matrix of, for rotations by less than pi."""
    logarithm = np.real(logm(matrix))
    skew = (logarithm - logarithm.T) / 2.0
    found: Floats = skew[np.triu_indices(len(matrix), 1)]
    return found


def log_volume(angles: Floats) -> float:
    r"""Logarithm of the volume that the exponential map gives to a unit of angles.

    The derivative of the exponential map at A, carried back to the identity, is
    :math:`(1 - e^{-\mathrm{ad} A}) / \mathrm{ad} A`, and the eigenvalues of :math:`\mathrm{ad} A`
    on skew matrices are the sums of two of A (Helgason 1978, theorem II.1.7).

    Parameters
    ----------
    angles : float array, shape (n (n - 1) / 2,)
        As for `rotation`.
    """
    size = round((1.0 + np.sqrt(1.0 + 8.0 * len(angles))) / 2.0)
    skew = np.zeros((size, size))
    skew[np.triu_indices(size, 1)] = angles
    turns = np.linalg.eigvalsh(1j * (skew - skew.T))
    sums = (turns[:, None] + turns)[np.triu_indices(size, 1)]
    return float(np.log(np.abs(np.sinc(sums / (2.0 * np.pi)))).sum())


class MovesAbout:
    """Crank-Nicolson moves of the angles by which a matrix is rotated from the mode.

    Parameters
    ----------
    mode : float array, shape (n, n)
        An orthonormal matrix.
    precision : float array, shape (n (n - 1) / 2, n (n - 1) / 2)
        Negative Hessian of the log-posterior there, by the angles a of ``mode @ rotation(a)``.
    """

    def __init__(self, mode: Floats, precision: Floats) -> None:
        self.mode = mode
        root = WIDENING * np.linalg.cholesky(np.linalg.inv(precision))
        self.about = GaussianApproximation(np.zeros(len(precision)), root)

    def __call__(self, point: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
        """New matrix, raveled, and the log-ratio with respect to the uniform distribution."""
        angles = angles_of(self.mode.T @ point.reshape(self.mode.shape))
        move = CrankNicolsonProposal(rng.choice(MOVES))
        new, log_ratio, _ = move.propose(self.about, angles, rng)
        volumes = log_volume(new) - log_volume(angles)
        return (self.mode @ rotation(new)).ravel(), log_ratio + volumes
