"""Terms of the log-density that read data of which the model has a few example rows only."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_austerity._pymc import (
    Mode,
    Shape,
    Shape_i,
    Subtensor,
    TensorType,
    Variable,
    ancestors,
    clone_replace,
)
from pymc_austerity.errors import NotRowwiseError, SettingError
from pymc_austerity.model.cut import Examples, Known, array_of
from pymc_austerity.model.terms import Term

__all__ = ["reading", "refuse_examples_in", "refuse_unread", "with_known_lengths"]


def reading(terms: Sequence[Term], known: Known) -> list[str]:
    """Names of the observed variables whose log-density reads examples.

    Raises
    ------
    SettingError
        There are none.
    """
    names = [t.name for t in terms if t.kind == "observed" and known.reads_examples(t.plain)]
    if not names:
        raise SettingError(
            f"data= names {_listed(known.examples.variables)}, which no observed variable of the "
            "model reads: name what it observes, or a potential with likelihood=[...]."
        )
    return names


def refuse_examples_in(terms: Iterable[Term], known: Known) -> None:
    """Refuse terms that would be evaluated in full, on the example.

    Raises
    ------
    SettingError
        Names the term.
    """
    for term in terms:
        if known.reads_examples(term.plain):
            read = {known.examples.name_of(v) for v in ancestors([term.plain]) if v.owner is None}
            named = f"name it in likelihood=[..., {term.name!r}]"
            remedy = "give the prior numbers" if term.kind == "prior" else named
            raise SettingError(
                f"{term.name!r} reads {_listed(n for n in read if n)}, whose rows are in data=, "
                f"but is not split into rows: {remedy}, or leave it out of the model."
            )


def refuse_unread(examples: Examples, read: Mapping[str, Variable]) -> None:
    """Refuse data without a use.

    Parameters
    ----------
    examples : Examples
    read : mapping of str to variable
        Data that rows read.

    Raises
    ------
    SettingError
        Names the data that are not used.
    """
    unread = [name for name in examples.variables if name not in read]
    if unread:
        raise SettingError(
            f"data= names {_listed(unread)}, which the rows of the log-likelihood do not read: "
            "leave it out, or name in likelihood=[...] what reads it."
        )


def refuse_number_of_rows(graphs: Sequence[Variable], known: Known) -> None:
    """Refuse graphs that know the number of rows of the example, after they were cut.

    Raises
    ------
    NotRowwiseError
        Something depends on the number of rows.
    """
    for variable in ancestors(graphs):
        name = known.examples.name_of(variable) if variable.owner is None else None
        if name is not None:
            raise NotRowwiseError(
                f"the model reads the number of rows of {name!r}, which is that of an example: "
                "give it as a number, and leave total_size= out."
            )


def with_known_lengths(graphs: Sequence[Variable], known: Known) -> list[Variable]:
    """Put numbers in the place of lengths that do not change with the number of rows.

    Parameters
    ----------
    graphs : sequence of variables
        Of the rows and of all other terms, after they were cut.
    known : Known

    Returns
    -------
    list of variables
    """
    examples = [v for v in ancestors(graphs) if v.owner is None and known.examples.name_of(v)]
    lengths = [
        v for v in ancestors(graphs) if _is_length(v) and set(ancestors([v])) & set(examples)
    ]
    if not lengths:
        return list(graphs)
    arrays = [array_of(v) for v in examples]
    inputs = [TensorType(a.dtype, shape=(None, *a.shape[1:]))() for a in arrays]
    given = dict(zip(examples, inputs, strict=True))
    function = pytensor.function(
        [*known.parameters, *inputs],
        clone_replace(lengths, given, rebuild_strict=False),
        mode=Mode(linker="py", optimizer="fast_compile"),
        on_unused_input="ignore",
    )
    point = [known.start(v) for v in known.parameters]
    once, twice = (function(*point, *[np.concatenate([a] * k) for a in arrays]) for k in (1, 2))
    numbers = {
        v: pt.constant(np.asarray(n, dtype=v.dtype))
        for v, n, other in zip(lengths, once, twice, strict=True)
        if n == other
    }
    return list(clone_replace(list(graphs), numbers, rebuild_strict=False))


def _is_length(variable: Variable) -> bool:
    """Whether it is one number of a shape."""
    node = variable.owner
    if node is None or variable.type.ndim:
        return False
    if isinstance(node.op, Shape_i):
        return True
    of_shape = node.inputs[0].owner
    return (
        isinstance(node.op, Subtensor) and of_shape is not None and isinstance(of_shape.op, Shape)
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(names)))
