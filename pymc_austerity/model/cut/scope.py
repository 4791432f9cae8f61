"""Nothing that grows with the number of rows may be evaluated in full."""

from pymc_austerity._pymc import TensorType, Variable
from pymc_austerity.model.cut.cut import Cut
from pymc_austerity.model.cut.known import is_view
from pymc_austerity.model.cut.refusal import CannotCut, in_words

__all__ = ["refuse_work_on_all_rows"]

_SHARE = 0.5
_AT_LEAST = 200
"""Data of at least this share of the rows, and this many, is taken for the rows themselves. What
is smaller costs little, and a model with few rows may well have as many covariates."""


def refuse_work_on_all_rows(cut: Cut) -> None:
    """Refuse parameter-dependent work over all rows, e.g. the mean of all linear predictors.

    The rules make such a graph right, and no comparison of numbers can find it: it only costs a
    full pass over the data at every evaluation.

    Raises
    ------
    CannotCut
        Something that is kept combines parameters with all rows.
    """
    known = cut.known
    if known.examples:  # what is kept reads no rows: see `Cut.keep`
        return

    def spans_rows(variable: Variable) -> bool:
        if not isinstance(variable.type, TensorType):
            return False
        shape = known.shape(variable)
        threshold = max(_SHARE * cut.n_rows, _AT_LEAST)
        return cut.n_rows in shape or (
            not known.depends(variable) and max(shape, default=0) >= threshold
        )

    for variable in known.dependent(dict.fromkeys(cut.kept)):
        if variable.owner is None or is_view(variable):
            continue
        if any(spans_rows(v) for v in (variable, *variable.owner.inputs)):
            raise CannotCut(
                f"{in_words(variable.owner.op)} combines parameters with all {cut.n_rows:,} rows, "
                "which takes a pass over all the data for any batch"
            )
