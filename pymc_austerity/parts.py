"""Functions that Python interprets, and that become parts of compiled functions."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numba
from numba import types
from numba.core.cgutils import unpack_tuple
from numba.core.compiler import Flags, compile_internal
from numba.core.types import Function
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

compiled_once = numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True)
"""Decorator of a function that numba compiles once on a machine; as in NumPy, 1 / 0 is infinite."""


def part(result: Any, *, compiled: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """Decorate a function that compiled functions call as well; for Python it does not change.

    `numba.njit` would optimize each function, and make machine code of it, together with all that
    it calls, and again in all that call it. Parts are optimized once, where all of them meet.

    Parameters
    ----------
    result : numba.types.Type
        What it returns.
    compiled : callable, optional
        A function of the same arguments that compiled functions call instead.
    """
    return lambda function: _part(result, function, lambda first: compiled or function)


def part_by_type(result: Any, versions: Mapping[type, Callable[..., Any]]) -> Callable[[F], F]:
    """Decorate a function with a compiled version for each named tuple that comes first.

    Parameters
    ----------
    result : numba.types.Type
        What it returns.
    versions : mapping of classes to functions
        Functions of the same arguments.
    """
    return lambda function: _part(result, function, lambda first: versions[first.instance_class])


def method(result: Any) -> Callable[[F], F]:
    """Decorate a function that calls the method of the same name of its first argument.

    Compiled functions may call it for named tuples whose method is a function of parts.

    Parameters
    ----------
    result : numba.types.Type
        What it returns.
    """
    return lambda function: _part(
        result, function, lambda first: getattr(first.instance_class, function.__name__)
    )


def _part(result: Any, function: F, choose: Callable[[Any], Callable[..., Any]]) -> F:
    def typed(typing_context: Any, *arguments: Any) -> Any:
        return result(*arguments), _codegen(choose(arguments[0]))

    names = ["typing_context", *inspect.signature(function).parameters]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    typed.__signature__ = signature  # type: ignore[attr-defined]
    typed.__name__, typed.__module__ = function.__name__, function.__module__
    template = make_intrinsic_template(function, typed, function.__name__)
    infer(template)
    infer_global(function, Function(template))
    return function


def _codegen(function: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[Any, Any] = {}

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if signature not in known:
            known[signature] = _compiled(function, context, signature)
        compiled = known[signature]
        context.active_code_library.add_linking_library(compiled.library)
        return context.call_internal(builder, compiled.fndesc, signature, values)

    return codegen


def _compiled(function: Callable[..., Any], context: Any, signature: Any) -> Any:
    """As numba compiles subroutines, but without optimizing or running them by themselves."""
    flags = Flags()
    flags.error_model, flags.nrt = "numpy", True
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    library = context.codegen().create_library(function.__name__)
    library._optimize_functions = library._optimize_final_module = _leave
    # the linker would prefer machine code of the part alone, which is slow, to what is optimized
    library._finalize_final_module = partial(setattr, library, "_finalized", True)
    arguments, result = signature.args, signature.return_type
    return compile_internal(
        context.typing_context, context, library, function, arguments, result, flags, {}
    )


def _leave(*module: Any) -> None:
    """Leave a part as it is."""


def pointer_to(number: Any) -> Callable[[Any], Any]:
    """A function that compiled code calls to make an array of numbers of an address.

    Parameters
    ----------
    number : numba type
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.CPointer(number)))

    def at(typing_context, address):  # type: ignore[no-untyped-def]
        return types.CPointer(number)(types.intp), codegen

    made: Callable[[Any], Any] = intrinsic(at)
    return made


reals, integers = pointer_to(types.float64), pointer_to(types.int64)
"""The float64 array, or the int64 array, at an address."""


@intrinsic
def pointers(typing_context, known):  # type: ignore[no-untyped-def]
    """An array without gaps as a pointer to its numbers; or a tuple with all arrays as pointers.

    Parts that are called with pointers alone are compiled once.
    """

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _pointed(context, builder, signature.args[0], values[0])

    return _pointing(known)(known), codegen


def _pointing(known: Any) -> Any:
    if isinstance(known, types.Array) and known.layout == "C":
        return types.CPointer(known.dtype)
    if isinstance(known, types.BaseNamedTuple):
        return types.BaseTuple.from_types(tuple(map(_pointing, known.types)), known.instance_class)
    if isinstance(known, types.BaseTuple):
        return types.BaseTuple.from_types(tuple(map(_pointing, known.types)))
    return known


def _pointed(context: Any, builder: Any, known: Any, value: Any) -> Any:
    if isinstance(known, types.Array):
        return context.make_array(known)(context, builder, value).data
    if isinstance(known, types.BaseTuple):
        pairs = zip(known.types, unpack_tuple(builder, value), strict=True)
        pointed = [_pointed(context, builder, *pair) for pair in pairs]
        return context.make_tuple(builder, _pointing(known), pointed)
    return value
