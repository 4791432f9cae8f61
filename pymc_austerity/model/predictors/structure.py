"""What a structure of linear predictors consists of."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymc_austerity._pymc import Variable
from pymc_austerity.model.cut import RowLeaf

__all__ = ["Dense", "Gathered", "Predictor", "RowStructure", "Single", "Term"]


@dataclass(frozen=True, eq=False)
class Dense:
    r"""A sum over columns of the data: ``scale * data[i] @ theta[entries]``.

    Attributes
    ----------
    entries : int array, shape (p,)
        Positions in the raveled vector of the variables, each at most once.
    data : variable, shape (m, p)
        Graph of leaf placeholders.
    scale : float
        A constant multiple.
    """

    entries: NDArray[np.int64]
    data: Variable
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Gathered:
    """An entry that the row picks: ``scale * coefficient[i] * theta[entries[index[i]]]``.

    Attributes
    ----------
    entries : int array, shape (n,)
        Positions of the levels in the raveled vector; several levels may share one.
    index : variable, shape (m,)
        Graph of leaf placeholders: integers from 0 to n - 1.
    coefficient : variable, shape (m,), or None
        Graph of leaf placeholders; None means 1.
    scale : float
        A constant multiple.
    """

    entries: NDArray[np.int64]
    index: Variable
    coefficient: Variable | None = None
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Single:
    """An entry that all rows read: ``scale * coefficient[i] * theta[entry]``.

    Attributes
    ----------
    entry : int
        Position in the raveled vector.
    coefficient : variable, shape (m,), or None
        Graph of leaf placeholders; None means 1.
    scale : float
        A constant multiple.
    """

    entry: int
    coefficient: Variable | None = None
    scale: float = 1.0


Term: TypeAlias = Dense | Gathered | Single


@dataclass(frozen=True, eq=False)
class Predictor:
    r"""One linear predictor, :math:`\eta_i = A_i \theta + o_i`.

    Attributes
    ----------
    terms : tuple of Dense, Gathered or Single
        Their sum is :math:`A_i \theta`.
    offset : variable, shape (m,), or None
        Graph of leaf placeholders; None means 0.
    name : str
        What it is in the model, such as ``a[group] + X @ b``.
    """

    terms: tuple[Term, ...]
    offset: Variable | None
    name: str


@dataclass(frozen=True, eq=False)
class RowStructure:
    r"""Rows as a function of a few linear predictors.

    .. math:: \log p(x_i | \theta) = f_i(\eta_{i1}, \dots, \eta_{ik})

    Attributes
    ----------
    predictors : tuple of Predictor
        The k predictors; no two have the same terms.
    etas : tuple of variables
        One vector per predictor, shape (m,): inputs of `function`.
    function : variable, shape (m,)
        Log-likelihoods of the rows in nats; a graph of `etas` and the placeholders of `leaves`.
        Entry i depends on no other entry of a predictor than its own.
    leaves : tuple of RowLeaf
        Data of the rows.
    size : int
        Length of the raveled vector of the variables.
    dtype : numpy.dtype
        Type of the raveled vector.
    """

    predictors: tuple[Predictor, ...]
    etas: tuple[Variable, ...]
    function: Variable
    leaves: tuple[RowLeaf, ...]
    size: int
    dtype: np.dtype
