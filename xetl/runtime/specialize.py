"""Specialisation: which properties of its arguments a kernel is compiled for.

Of an array these are dtype, rank and the dimension whose stride is 1; of a number
whether it is an integer, a float or a bool. All other arguments are compile-time
values.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType
from typing import Any, cast

import numpy as np

from xetl.errors import LaunchError, a_kind
from xetl.language.dtypes import DType, is_foreign
from xetl.language.maps import SgMap, WgMap, XeMap
from xetl.language.operation import Function, operation_name
from xetl.language.signature import (
    ArrayParam,
    ConstParam,
    Param,
    ScalarParam,
    Signature,
    TupleParam,
    leaves,
)
from xetl.records import record
from xetl.runtime.arrays import (
    ArrayView,
    constant_of,
    describe_if_array,
    typed,
    unit_dim,
)
from xetl.runtime.overlap import view_key
from xetl.runtime.parameters import MISSING, Parameter, Parameters
from xetl.runtime.signature_text import Described
from xetl.runtime.structured import is_structure, take_apart
from xetl.runtime.usm import PLAIN

_FUNCTIONS = (Function, FunctionType, BuiltinFunctionType)
_COMPILE_TIME: tuple[type, ...] = (DType, WgMap, SgMap, XeMap, *_FUNCTIONS)
_I64 = range(-(1 << 63), 1 << 63)


@record(frozen=True)
class Specialization:
    """The specialisation of one call: the signature to compile for, and its arguments.

    Attributes:
        args: the runtime values, constants left out.
        names: the names of their parameters.
        key: equal for calls that can use the same code, and for no others.
        values: the objects of the call, one for each of the signature's parameters.
    """

    signature: Signature
    args: tuple[ArrayView | int | float, ...]
    names: tuple[str, ...]
    key: Hashable
    values: tuple[Any, ...]

    def positions(self, stored: Collection[int]) -> list[int]:
        """Return the indices of the parameters that some runtime values belong to."""
        runtime = list(self.signature.runtime)
        return [runtime[index] for index in sorted(stored)]


def specialize(parameters: Parameters, values: Sequence[Any]) -> Specialization:
    """Classify the value of each parameter.

    Raises:
        LaunchError: a value has a type or dtype that kernels cannot take.
    """
    found: list[_Classified] = []
    tuples: list[TupleParam] = []

    def leaf(path: str, value: Any, is_constant: bool) -> None:
        found.append(_classify_leaf(path, value, is_constant))

    for parameter, value in zip(parameters.each, values):
        if _has_parts(parameter, value):
            tuples.append(take_apart(parameter.name, value, leaf))
        else:
            found.append(_classify(parameter, value))
    args = [arg for _, arg in found if arg is not None]
    params = with_aliases([param for param, _ in found], args)
    signature = Signature(tuple(params), tuple(tuples))
    names = tuple(each.name for each in signature.runtime.values())
    key = tuple(typed(p.value) if isinstance(p, ConstParam) else p for p in params)
    objects = list(leaves_of(parameters, values)) if tuples else values
    key = *key, *tuples
    return Specialization(signature, tuple(args), names, key, tuple(objects))


_Classified = tuple[Param, ArrayView | int | float | None]


def _has_parts(parameter: Parameter, value: Any) -> bool:
    if parameter.is_constexpr:
        return False
    if parameter.is_rest:
        return True
    return type(value) not in PLAIN and is_structure(parameter.name, value)


def leaves_of(parameters: Parameters, values: Sequence[Any]) -> Iterator[Any]:
    """Yield the objects of a call; for a structure, the objects in it."""
    for parameter, value in zip(parameters.each, values):
        if _has_parts(parameter, value):
            yield from leaves([value])
        else:
            yield value


def _classify_leaf(path: str, value: Any, is_constant: bool) -> _Classified:
    """Classify a leaf of a structure; in one with fields numbers are constants."""
    parameter = Parameter(path, MISSING, is_constexpr=False)
    if not is_constant or isinstance(value, Described):
        return _classify(parameter, value)
    if describe_if_array(value, path) is not None:
        return _classify(parameter, value)
    return ConstParam(path, constant_of(path, value)), None


def _classify(parameter: Parameter, value: Any) -> _Classified:
    name = parameter.name
    if isinstance(value, Described):
        return value.param(name), None
    if parameter.is_constexpr:
        return ConstParam(name, constant_of(name, value)), None
    is_ours = value is None or isinstance(value, _COMPILE_TIME)
    if is_ours or operation_name(value) is not None:
        return ConstParam(name, value), None
    scalar = _scalar(name, value)
    if scalar is not None:
        return scalar
    view = describe_if_array(value, name)
    if view is not None:
        return ArrayParam(name, view.dtype, len(view.shape), unit_dim(view)), view
    dtype = _dtype_of_class(value)
    if dtype is not None:
        return ConstParam(name, dtype), None
    raise _unsupported(name, value)


def _scalar(name: str, value: object) -> tuple[ScalarParam, int | float] | None:
    if isinstance(value, bool | np.bool_):
        return ScalarParam(name, "i1"), bool(cast("Any", value))
    if isinstance(value, int | np.integer):
        number = int(cast("int", value))
        if number not in _I64:
            problem = f"`{name}` is {number}, which does not fit a 64-bit integer"
            raise LaunchError(problem, "X0805")
        return ScalarParam(name, "i64"), number
    is_float = isinstance(value, float | np.floating)
    if is_float or _dtype_of_class(type(value)) is not None:  # bf16, for NumPy a void
        return ScalarParam(name, "f64"), float(cast("float", value))
    return None


def _dtype_of_class(value: object) -> DType | None:
    """Return the dtype of ``np.float32``, ``np.dtype("f4")`` or ``torch.float32``."""
    is_class = isinstance(value, type) and issubclass(value, np.generic)
    if not (is_class or is_foreign(cast("object", value))):
        return None
    return DType.find(cast("Any", value))


def _unsupported(name: str, value: object) -> LaunchError:
    found = a_kind(value)
    if isinstance(value, list | tuple):
        advice = f"pass `np.asarray({name})`, or annotate `{name}` as constexpr"
    elif isinstance(value, str):
        advice = f"pass an array; if `{name}` is to choose when compiling, annotate it"
        advice += " as constexpr"
    elif isinstance(value, complex | np.complexfloating):
        advice = "pass its real and its imaginary part"
    else:
        advice = "arrays (NumPy, torch, DLPack), ints, floats, None, functions, dtypes"
        advice = f"a kernel takes {advice} and maps; anything hashable as constexpr"
    problem = f"`{name}` is {found}, which a kernel cannot take"
    return LaunchError(problem, code="X0805", help=advice)


def with_aliases(
    params: Sequence[Param], args: Sequence[ArrayView | int | float]
) -> list[Param]:
    """Number the groups of arrays that are the very same view."""
    if not args:
        return [*params]  # a signature string: no array is known to be the same
    positions = [i for i, p in enumerate(params) if not isinstance(p, ConstParam)]
    views = {i: v for i, v in zip(positions, args) if isinstance(v, ArrayView)}
    groups: dict[object, list[int]] = {}
    for index, view in views.items():
        groups.setdefault(view_key(view), []).append(index)
    shared = [group for group in groups.values() if len(group) > 1]
    result = list(params)
    for number, group in enumerate(shared):
        for index in group:
            old = cast("ArrayParam", params[index])
            result[index] = replace(old, alias=number)
    return result
