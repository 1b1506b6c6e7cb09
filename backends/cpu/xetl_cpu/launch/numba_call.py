"""A kernel as a function that code compiled by numba can call: `Kernel.numba`.

The function packs numba's arrays into the slots of the kernel (section 4 of
docs/design/0001-seams.md) and calls its machine code by address, on the calling thread
alone: so loops of `prange` can use all threads. Types are checked when numba compiles a
call; sizes of the grid, strides and shared memory are checked at run time.
"""

from __future__ import annotations

import collections
import ctypes
from collections.abc import Callable, Collection
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.language.ops import cdiv
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl_cpu.launch import FIRST_ARGUMENT, GRID, THREADS
from xetl_cpu.launch.tensor_words import address_of

_LARGEST_GRID = (1 << 31) - 1
_AS_BITS = {"f16": "uint16", "bf16": "uint16", "f8e4m3": "uint8", "f8e5m2": "uint8"}
"""Dtypes of which numba has no arrays on a CPU, and the dtype of their bits."""

_kept: list[object] = []
"""Machine code whose address functions of numba have: it is never unmapped."""


def numba_call(
    name: str,
    address: int,
    signature: Signature,
    stored: Collection[int],
    grid: tuple[int, int, int] | Callable[[Any], Any],
    keep: object,
) -> Callable[..., None]:
    """Return a numba function that takes the arguments of a kernel without constants.

    Args:
        name: the name of the kernel.
        address: of its machine code.
        signature: the signature that it was compiled for.
        stored: indices of the arguments it writes.
        grid: three sizes, or a function of the arguments that numba compiles.
        keep: the owner of the machine code.

    Raises:
        LaunchError: a parameter is a tuple.
    """
    if signature.tuples:
        problem = f"`{name}` takes a tuple, which a call from numba cannot give"
        raise LaunchError(problem, "X0805", "give the kernel its arrays one by one")
    _kept.append(keep)
    numba: Any = import_whole("numba")
    given = list(signature.runtime.values())
    scope: dict[str, Any] = {
        **_helpers(),
        "_Error": LaunchError,
        "_call": _intrinsic(name, address, given, stored),
    }
    sizes = str(grid)
    if callable(grid):
        sizes = f"_three(_grid({_grid_argument(signature, scope)}))"
        # A function that is compiled already is used as it is.
        is_compiled = hasattr(grid, "py_func")
        scope["_grid"] = grid if is_compiled else numba.njit(grid, nogil=True)
    lines = [
        f"def {name}({', '.join(p.name for p in given)}):",
        f"    _sizes = {sizes}",
        f"    if min(_sizes) < 1 or max(_sizes) > {_LARGEST_GRID}:",
        f"        raise _Error('`{name}`: a size of its grid is not from 1 to 2^31-1')",
        *_checks(given, stored),
        f"    if _call(_sizes, ({''.join(f'{p.name}, ' for p in given)})) != 0:",
        f"        raise MemoryError('no memory for the workspace of `{name}`')",
    ]
    exec("\n".join(lines), scope)
    return numba.njit(nogil=True)(scope[name])


def _grid_argument(signature: Signature, scope: dict[str, Any]) -> str:
    """Return code that makes the arguments by name; ``scope`` gets its constants."""
    names: list[str] = []
    values: list[str] = []
    numbers = count()
    for param in signature.params:
        value = param.name
        if isinstance(param, ConstParam):
            if not isinstance(param.value, int | float | None):
                continue  # numba need not have a type for it
            value = f"_constant{next(numbers)}"
            scope[value] = param.value
        names.append(param.name)
        values.append(value)
    make: Any = collections.namedtuple  # its fields are known now only
    scope["_Arguments"] = make("_Arguments", names, rename=True)
    return f"_Arguments({', '.join(values)})"


def _checks(
    given: list[ArrayParam | ScalarParam], stored: Collection[int]
) -> list[str]:
    """Return lines that raise if strides or memory are not as the kernel assumes."""
    lines: list[str] = []

    def refuse(condition: str, message: str) -> None:
        lines.extend([f"    if {condition}:", f"        raise _Error({message!r})"])

    arrays = {i: p for i, p in enumerate(given) if isinstance(p, ArrayParam)}
    for index, param in arrays.items():
        name, unit = param.name, param.unit_dim
        if unit is not None:
            what = f"dimension {unit} of `{name}` must have stride 1"
            refuse(f"_has_gaps({name}, {unit})", what)
        if index not in stored:
            continue
        what = f"`{name}` is written, but some of its elements share memory"
        refuse(f"_is_folded({name})", what)
        for other in arrays:
            if other != index:
                second = arrays[other].name
                what = f"`{name}` is written, but may share memory with `{second}`"
                refuse(f"_may_share({name}, {second})", what)
    return lines


def _three(sizes: Any) -> Any:
    """Return three sizes of a grid, given one to three; numba compiles it."""
    raise NotImplementedError


@cache
def _helpers() -> dict[str, Any]:
    """Return functions that all calls use, compiled by numba."""
    numba: Any = import_whole("numba")
    extending: Any = import_whole("numba.extending")
    extending.overload(cdiv)(_cdiv)
    extending.overload(_three)(_three_of)
    functions = _may_share, _is_folded, _has_gaps
    found = {each.__name__: numba.njit(each, nogil=True) for each in functions}
    return {**found, "_three": _three}


def _cdiv(a: Any, b: Any) -> Any:
    def divide(a: Any, b: Any) -> Any:
        return -(-a // b)

    return divide


def _three_of(sizes: Any) -> Any:
    """Return the code of `_three` for a type of numba."""
    types: Any = import_whole("numba").types

    def one(sizes: Any) -> Any:
        return sizes, 1, 1

    def first(sizes: Any) -> Any:
        return sizes[0], 1, 1

    def two(sizes: Any) -> Any:
        return sizes[0], sizes[1], 1

    def three(sizes: Any) -> Any:
        return sizes

    if isinstance(sizes, types.Integer):
        return one
    count = len(sizes) if isinstance(sizes, types.BaseTuple) else 0
    if 1 <= count <= 3:
        return (first, two, three)[count - 1]
    problem = f"a grid function gives {sizes} to numba, not one to three ints"
    raise LaunchError(problem, code="X0802")


def _may_share(a: Any, b: Any) -> Any:
    """Whether the bytes that two arrays span overlap."""
    if a.size == 0 or b.size == 0:
        return False
    low = other_low = 0
    high, other_high = a.itemsize, b.itemsize
    for dim in range(a.ndim):
        reach = (a.shape[dim] - 1) * a.strides[dim]
        low, high = low + min(reach, 0), high + max(reach, 0)
    for dim in range(b.ndim):
        reach = (b.shape[dim] - 1) * b.strides[dim]
        other_low, other_high = other_low + min(reach, 0), other_high + max(reach, 0)
    step = np.int64(b.ctypes.data) - np.int64(a.ctypes.data)
    return low < step + other_high and step + other_low < high


def _is_folded(a: Any) -> Any:
    """Whether elements of an array may share memory: as `xetl.runtime.overlap`."""
    if a.size == 0:
        return False
    for dim in range(a.ndim):
        if a.shape[dim] == 1:
            continue
        step, reach = abs(a.strides[dim]), 0
        for inner in range(a.ndim):
            small = abs(a.strides[inner])
            if small < step or (small == step and inner < dim):
                reach += small * (a.shape[inner] - 1)
        if step <= reach:
            return True
    return False


def _has_gaps(a: Any, dim: Any) -> Any:
    return a.shape[dim] > 1 and a.strides[dim] != a.itemsize


def _intrinsic(
    name: str,
    address: int,
    given: list[ArrayParam | ScalarParam],
    stored: Collection[int],
) -> Any:
    """Return ``call(sizes, arguments)``: 0, or -1 if there is no memory to run it."""
    numba: Any = import_whole("numba")
    extending: Any = import_whole("numba.extending")
    types = numba.types

    @extending.intrinsic
    def call(typingctx: Any, sizes: Any, arguments: Any) -> Any:
        wanted = [
            _checked(param, type_, index in stored)
            for index, (param, type_) in enumerate(zip(given, arguments))
        ]
        taken = types.UniTuple(types.int64, 3), types.Tuple(wanted)

        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return _emit(context, builder, values, wanted, (address, name))

        return types.int64(*taken), emit

    return call


def _checked(param: ArrayParam | ScalarParam, given: Any, is_stored: bool) -> Any:
    """Return the type in which numba passes an argument.

    Raises:
        LaunchError: the argument does not fit the parameter.
    """
    numba: Any = import_whole("numba")
    types = numba.types
    if isinstance(param, ScalarParam):
        number, fits = {
            "i64": (types.int64, (types.Integer,)),
            "f64": (types.float64, (types.Float, types.Integer)),
            "i1": (types.boolean, (types.Boolean,)),
        }[param.kind]
        if isinstance(given, fits):
            return number
        raise _unfit(param.name, given, f"a number ({param.kind})")
    dtype = np.dtype(_AS_BITS.get(param.dtype.name, param.dtype.numpy))
    element = numba.from_dtype(dtype)
    wanted = f"an array of {element}, rank {param.rank}"
    if param.dtype.name in _AS_BITS:
        wanted += f" (the bits of {param.dtype})"
    if not isinstance(given, types.Array):
        raise _unfit(param.name, given, wanted)
    if given.dtype != element or given.ndim != param.rank:
        raise _unfit(param.name, given, wanted)
    unit = {"C": param.rank - 1, "F": 0}.get(given.layout)
    if param.rank > 1 and None not in (unit, param.unit_dim) and unit != param.unit_dim:
        raise _unfit(param.name, given, f"{wanted}, stride 1 at {param.unit_dim}")
    if not given.aligned or (is_stored and not given.mutable):
        what = "that may be written" if given.aligned else "whose elements are aligned"
        raise _unfit(param.name, given, f"{wanted}, {what}")
    return given


def _unfit(name: str, given: Any, wanted: str) -> LaunchError:
    problem = f"`{name}` is {given} in a call from numba, but must be {wanted}"
    help_ = "make the function for another signature: kernel.numba(...)"
    return LaunchError(problem, "X0805", help_)


def _emit(
    context: Any, builder: Any, values: Any, wanted: list[Any], kernel: tuple[int, str]
) -> Any:
    """Fill the slots and call; call again with a workspace if the kernel needs one."""
    cgutils: Any = import_whole("numba.core.cgutils")
    ir: Any = import_whole("llvmlite.ir")
    word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
    sizes = cgutils.unpack_tuple(builder, values[0], 3)
    words: list[Any] = [word(0)] * FIRST_ARGUMENT
    words[THREADS] = word(1)
    words[GRID : GRID + 3] = sizes
    if wanted:
        arguments = cgutils.unpack_tuple(builder, values[1], len(wanted))
        for type_, value in zip(wanted, arguments):
            words += _words(context, builder, type_, value)
    slots = cgutils.alloca_once(builder, word, size=len(words))
    for index, value in enumerate(words):
        builder.store(value, builder.gep(slots, [word(index)]))

    libc = ctypes.CDLL(None)

    def run(address: int, what: str, result: Any, args: list[Any]) -> Any:
        kind = ir.FunctionType(result, [arg.type for arg in args])
        # The address is valid in this process only: numba then caches nothing on disk.
        place = context.add_dynamic_addr(builder, address, info=what)
        return builder.call(builder.bitcast(place, kind.as_pointer()), args)

    result = cgutils.alloca_once(builder, word)
    first = run(*kernel, word, [slots])
    builder.store(first, result)
    with builder.if_then(builder.icmp_signed(">", first, word(0)), likely=False):
        size = builder.and_(builder.add(first, word(63)), word(-64))
        allocate = address_of(libc.aligned_alloc)
        memory = run(allocate, "aligned_alloc", pointer, [word(64), size])
        builder.store(word(-1), result)
        with builder.if_then(cgutils.is_not_null(builder, memory)):
            builder.store(builder.ptrtoint(memory, word), builder.gep(slots, [word(2)]))
            builder.store(size, builder.gep(slots, [word(3)]))
            builder.store(run(*kernel, word, [slots]), result)
            run(address_of(libc.free), "free", ir.VoidType(), [memory])
    return builder.load(result)


def _words(context: Any, builder: Any, type_: Any, value: Any) -> list[Any]:
    """Return the slots of an argument."""
    cgutils: Any = import_whole("numba.core.cgutils")
    ir: Any = import_whole("llvmlite.ir")
    word = ir.IntType(64)
    numba: Any = import_whole("numba")
    if isinstance(type_, numba.types.Array):
        array = context.make_array(type_)(context, builder, value)
        item = word(np.dtype(str(type_.dtype)).itemsize)
        strides = cgutils.unpack_tuple(builder, array.strides, type_.ndim)
        return [
            builder.ptrtoint(array.data, word),
            *cgutils.unpack_tuple(builder, array.shape, type_.ndim),
            *[builder.sdiv(stride, item) for stride in strides],
        ]
    if type_ == numba.types.float64:
        return [builder.bitcast(value, word)]
    return [value if type_ == numba.types.int64 else builder.zext(value, word)]
