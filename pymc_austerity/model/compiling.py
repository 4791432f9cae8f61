"""How every function of a model is compiled."""

from collections.abc import Callable, Sequence
from typing import Any

import pymc as pm

from pymc_austerity._pymc import underivable
from pymc_austerity.errors import SettingError
from pymc_austerity.model.special import expand_trigamma
from pymc_austerity.time_limit import end_if_late

__all__ = ["compiled"]


def compiled(
    model: pm.Model, inputs: Sequence, outputs: Any, compile_kwargs: dict[str, Any] | None
) -> Callable[..., Any]:
    """Compile one graph, or a list of them.

    Parameters
    ----------
    model : pymc.Model
        Whose ``check_bounds`` is honored.
    inputs : sequence of variables
        Arguments of the function; it trusts them to have the right types, and may ignore some.
    outputs : variable or list of variables
        What it returns.
    compile_kwargs : dict, optional
        Passed on to ``pymc.compile``. The mode is NUMBA unless it says otherwise.

    Raises
    ------
    SettingError
        PyTensor does not compile with these arguments.
    """
    end_if_late()
    many = isinstance(outputs, list)
    expanded = expand_trigamma(outputs if many else [outputs])
    kwargs = {"mode": "NUMBA", "on_unused_input": "ignore"} | (compile_kwargs or {})
    with model:
        try:
            function = pm.compile(list(inputs), expanded if many else expanded[0], **kwargs)
        except Exception as error:
            if not compile_kwargs or isinstance(error, underivable):
                raise
            reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            raise SettingError(
                f"compile_kwargs={compile_kwargs!r} is rejected by PyTensor ({reason}): leave out "
                "what it does not take, or install what it needs."
            ) from error
    function.trust_input = True
    return function
