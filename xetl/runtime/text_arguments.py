"""Arguments of text kernels: checks against the types of the function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    FunctionType,
    IntegerType,
    MemRefType,
    NoneAttr,
)
from xdsl.ir import Attribute

from xetl.backend import ArrayView
from xetl.dialects.base import is_memref, is_number
from xetl.dialects.memref_layout import memory_space_of, strides_of
from xetl.errors import LaunchError, a_kind
from xetl.language.dtypes import BY_NAME, DType
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.runtime.arrays import describe_if_array, unit_dim
from xetl.runtime.specialize import Specialization, with_aliases


def aliases_of(signature: Signature) -> list[int]:
    """Return for each argument the number of its group of same views, or -1."""
    found = [getattr(param, "alias", None) for param in signature.params]
    return [-1 if alias is None else alias for alias in found]


def why_not_launchable(kernel: str, type_: FunctionType) -> LaunchError | None:
    """Return the error if a function of this type cannot be launched, else None."""
    wrong = next((t for t in type_.inputs if not _can_be_given(t)), None)
    if wrong is None and not type_.outputs.data:
        return None
    what = "it has results" if wrong is None else f"it takes {wrong}"
    help_ = "a kernel takes memrefs, index, integers and floats, and gives nothing"
    return LaunchError(f"`{kernel}` cannot be launched: {what}", "X0819", help_)


def _can_be_given(type_: Attribute) -> bool:
    if is_memref(type_):
        element = type_.element_type
        return memory_space_of(type_) != 3 and is_number(element)
    return is_number(type_)


def bind(
    kernel: str, names: Sequence[str], types: Sequence[Attribute], args: Sequence[Any]
) -> Specialization:
    """Check the arguments of a launch.

    Raises:
        LaunchError: there are too few or too many, or one does not fit its type.
    """
    if len(args) != len(types):
        problem = f"`{kernel}` takes {len(types)} arguments, but {len(args)} were given"
        help_ = "its arguments are " + ", ".join(
            f"`{name}`: {type_}" for name, type_ in zip(names, types)
        )
        raise LaunchError(problem, code="X0803", help=help_)
    values = [_value(*each) for each in zip(names, types, args)]
    params = [_param(*each) for each in zip(names, types, values)]
    return _asks_for(names, tuple(with_aliases(params, values)), values, args)


def for_any(names: Sequence[str], types: Sequence[Attribute]) -> Specialization:
    """Return what to compile for without arguments, from the types of the function."""
    params: list[ArrayParam | ScalarParam] = []
    for name, type_ in zip(names, types):
        value: ArrayView | int = 0
        if is_memref(type_):
            dtype, strides = DType.of(str(type_.element_type)), strides_of(type_) or ()
            # Unknown sizes count as more than one element.
            shape = tuple(2 if n < 0 else n for n in type_.get_shape()) or (1,)
            value = ArrayView(0, dtype, shape, cast("Any", strides), False, None)
        params.append(_param(name, type_, value))
    return _asks_for(names, tuple(params), (), ())


def with_sizes(signature: Signature, types: Sequence[Attribute]) -> Signature:
    """Return the signature with the sizes in the types, which a launch would check."""
    params = list(signature.params)
    for place, (param, type_) in enumerate(zip(signature.params, types)):
        if isinstance(param, ArrayParam) and is_memref(type_):
            shape = tuple(None if size < 0 else size for size in type_.get_shape())
            strides = tuple(strides_of(type_) or ()) if shape else (1,)
            kept = param.name, param.dtype, param.rank, param.unit_dim
            params[place] = ArrayParam(*kept, None, shape, strides)
    return Signature(tuple(params))


def _asks_for(
    names: Sequence[str],
    params: tuple[ArrayParam | ScalarParam | ConstParam, ...],
    values: Sequence[ArrayView | int | float],
    args: Sequence[Any],
) -> Specialization:
    of_call = tuple(values), tuple(names), params, tuple(args)
    return Specialization(Signature(params), *of_call)


def _value(name: str, type_: Attribute, given: Any) -> ArrayView | int | float:
    if is_memref(type_):
        return _array(name, type_, given)
    if isinstance(type_, AnyFloat):
        if isinstance(given, bool) or not isinstance(
            given, int | float | np.integer | np.floating
        ):
            raise _wrong_kind(name, type_, given)
        return float(cast("float", given))
    return _integer(name, type_, given)


def _integer(name: str, type_: Attribute, given: Any) -> int:
    if isinstance(given, np.integer | np.bool_):
        given = cast("Any", given).item()
    if not isinstance(given, int):
        raise _wrong_kind(name, type_, given)
    bits = type_.bitwidth if isinstance(type_, IntegerType) else 64
    low, high = -(1 << (bits - 1)), 1 << bits
    if not low <= given < high:
        problem = f"`{name}` is {given}, which does not fit {type_}"
        raise LaunchError(problem, code="X0805")
    if bits == 1:
        return bool(given)
    # Unsigned numbers of 64 bits are passed as the signed number of the same bits.
    return given - (1 << 64) if given >= 1 << 63 else int(given)


def _wrong_kind(name: str, type_: Attribute, given: object) -> LaunchError:
    problem = f"`{name}` is {a_kind(given)}, but must be {type_}"
    return LaunchError(problem, code="X0805")


def _array(name: str, type_: MemRefType[Attribute], given: Any) -> ArrayView:
    is_scalar = type(given) is np.ndarray and given.ndim == 0
    view = describe_if_array(given.reshape(1) if is_scalar else given, name)
    if view is None:
        raise _wrong_kind(name, type_, given)
    element = str(type_.element_type)
    own = BY_NAME[element].name if element in BY_NAME else element
    names = (own, "i64") if element == "index" else (own, f"u{element[1:]}")
    if element == "tf32":
        names = ("f32",)
    if view.dtype.name not in names:
        problem = f"`{name}` has dtype {view.dtype.name}, but must have {names[0]}"
        raise LaunchError(problem, code="X0824", notes=[f"it is bound to {type_}"])
    shape = type_.get_shape()
    if not shape:
        return _flat(name, type_, view)
    _check_shape(name, type_, view)
    _check_strides(name, type_, view)
    return view


def _flat(name: str, type_: Attribute, view: ArrayView) -> ArrayView:
    """Return a flat view for ``memref<f16>``: any number of contiguous elements."""
    step = 1
    for extent, stride in zip(reversed(view.shape), reversed(view.strides)):
        if extent > 1 and stride != step:
            what = "has gaps between its elements"
            problem = f"`{name}` {what}, which {type_} cannot have"
            raise LaunchError(problem, code="X0824", help="pass a copy")
        step *= extent
    return replace(view, shape=(prod(view.shape),), strides=(1,))


def _check_shape(name: str, type_: MemRefType[Attribute], view: ArrayView) -> None:
    shape = type_.get_shape()
    if len(shape) != len(view.shape):
        problem = f"`{name}` has rank {len(view.shape)}, but must have {len(shape)}"
        raise LaunchError(problem, code="X0824", notes=[f"it is bound to {type_}"])
    for dim, (wanted, found) in enumerate(zip(shape, view.shape)):
        if wanted >= 0 and wanted != found:
            problem = f"dimension {dim} of `{name}` is {found}, but must be {wanted}"
            raise LaunchError(problem, code="X0824", notes=[f"it is bound to {type_}"])


def _check_strides(name: str, type_: MemRefType[Attribute], view: ArrayView) -> None:
    strides = strides_of(type_)
    if strides is None:
        problem = f"`{name}` is bound to {type_}, whose layout has no strides"
        raise LaunchError(problem, code="X0824")
    if 0 in view.shape:
        return
    step = 1
    for dim in reversed(range(len(strides))):
        wanted = strides[dim]
        if wanted is None and isinstance(type_.layout, NoneAttr):
            wanted = step  # without a layout a memref is contiguous
        step *= view.shape[dim]
        if wanted not in (None, view.strides[dim]) and view.shape[dim] > 1:
            raise LaunchError(
                f"dimension {dim} of `{name}` has stride {view.strides[dim]}, "
                f"but must have {wanted}",
                code="X0824",
                notes=[f"it is bound to {type_}"],
                help="pass an array of that layout, or write strided<[?, ?]>",
            )


def _param(
    name: str, type_: Attribute, value: ArrayView | int | float
) -> ArrayParam | ScalarParam:
    if isinstance(value, ArrayView):
        return ArrayParam(name, value.dtype, len(value.shape), unit_dim(value))
    if isinstance(type_, AnyFloat):
        return ScalarParam(name, "f64")
    is_bool = isinstance(type_, IntegerType) and type_.bitwidth == 1
    return ScalarParam(name, "i1" if is_bool else "i64")
