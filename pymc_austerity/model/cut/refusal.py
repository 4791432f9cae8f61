"""Why a log-likelihood cannot be cut to rows, in words that a user of PyMC understands."""

from typing import Any

from pymc_austerity._pymc import (
    ArgSortOp,
    Blockwise,
    CAReduce,
    CumOp,
    Dot,
    Elemwise,
    LogSoftmax,
    Scan,
    Softmax,
    SortOp,
)

__all__ = ["CannotCut", "in_words"]

_WORDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (Scan, "a loop (scan)"),
    (CumOp, "a cumulative sum or product"),
    ((SortOp, ArgSortOp), "a sort"),
    (Softmax, "a softmax"),
    (LogSoftmax, "a log-softmax"),
    (CAReduce, "a sum, mean or other reduction"),
    (Dot, "a matrix product"),
    (Elemwise, "an element-wise operation"),
)


class CannotCut(Exception):
    """Some rows of a variable cannot be computed without its other rows.

    Parameters
    ----------
    reason : str
        Part of a sentence, to follow "because": names the operation in words.
    remedy : str
        What to do; empty for the usual.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def in_words(op: Any) -> str:
    """Name an operation: "a softmax" rather than its class where there is a word for it."""
    op = op.core_op if isinstance(op, Blockwise) else op
    if "linalg" in type(op).__module__:
        return f"the linear algebra operation {type(op).__name__}"
    for classes, words in _WORDS:
        if isinstance(op, classes):
            return words
    return f"the operation {type(op).__name__}"
