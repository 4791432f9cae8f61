"""Functions that become parts of the compiled functions that call them."""

import inspect
from collections.abc import Callable, Mapping, Set
from typing import Any

from numba.core.compiler import Flags, compile_internal
from numba.core.cpu_options import FastMathOptions
from numba.extending import intrinsic

__all__ = ["part", "part_by_type"]


def part(result: Any, *, fastmath: Set[str] = frozenset()) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function that only compiled functions call.

    `numba.njit` would optimize each function, and make machine code of it, together with all that
    it calls, and again in all that call it. Parts are optimized once, where all of them meet.

    Parameters
    ----------
    result : numba.types.Type
        What it returns.
    fastmath : set of str
        What may be changed about its arithmetic, as for `numba.njit`.
    """
    return lambda function: _part(result, function, lambda first: function, fastmath)


def part_by_type(result: Any, versions: Mapping[type, Callable[..., Any]]) -> Any:
    """A function with a version for each named tuple that its first argument may be.

    Parameters
    ----------
    result : numba.types.Type
        What it returns.
    versions : mapping of classes to functions
        Functions of the same arguments.
    """
    any_version = next(iter(versions.values()))
    return _part(result, any_version, lambda first: versions[first.instance_class])


def _part(
    result: Any,
    pattern: Callable[..., Any],
    choose: Callable[[Any], Callable[..., Any]],
    fastmath: Set[str] = frozenset(),
) -> Any:
    def typed(typing_context: Any, *arguments: Any) -> Any:
        return result(*arguments), _codegen(choose(arguments[0]), fastmath)

    names = ["typing_context", *inspect.signature(pattern).parameters]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    typed.__signature__ = signature  # type: ignore[attr-defined]
    typed.__name__, typed.__module__ = pattern.__name__, pattern.__module__
    return intrinsic(typed)


def _codegen(function: Callable[..., Any], fastmath: Set[str]) -> Callable[..., Any]:
    known: dict[Any, Any] = {}

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if signature not in known:
            known[signature] = _compiled(function, context, signature, fastmath)
        compiled = known[signature]
        context.active_code_library.add_linking_library(compiled.library)
        return context.call_internal(builder, compiled.fndesc, signature, values)

    return codegen


def _compiled(
    function: Callable[..., Any], context: Any, signature: Any, fastmath: Set[str]
) -> Any:
    """As numba compiles subroutines, but without optimizing them by themselves."""
    flags = Flags()
    flags.error_model, flags.nrt = "numpy", True
    flags.fastmath = FastMathOptions(set(fastmath))
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    library = context.codegen().create_library(function.__name__)
    library._optimize_functions = library._optimize_final_module = _leave
    arguments, result = signature.args, signature.return_type
    return compile_internal(
        context.typing_context, context, library, function, arguments, result, flags, {}
    )


def _leave(*module: Any) -> None:
    """Leave a part as it is."""
