"""`vector`: shapes, parts, masks, reductions; loads, stores, gathers, transfers.

Elements that are masked off are never touched.  Source: MLIR, `vector`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import methodcaller
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr

from xetl.dialects.base import ints_of, is_vector, shape_of
from xetl.errors import InternalError
from xetl_reference.combining import combine, reduction
from xetl_reference.floats import in_f64
from xetl_reference.memory import READ, WRITE, View, readers
from xetl_reference.values import (
    BOOL,
    Array,
    Binary,
    Function,
    Meaning,
    Unary,
    always,
    dtype_of,
    same,
    unbox,
)


def _broadcast(op: Any) -> Unary:
    type_ = op.result.type
    dtype, shape = dtype_of(type_), shape_of(type_)
    return lambda source: np.broadcast_to(np.asarray(source, dtype), shape)


def _step(op: Any) -> Function:
    values = np.arange(*shape_of(op.result.type), dtype=dtype_of(op.result.type))
    values.flags.writeable = False
    return lambda: values


# Parts ------------------------------------------------------------------------------


def _extract(op: Any) -> Function:
    (position,) = readers(op.static_position)
    scalar = not is_vector(op.result.type)

    def run(source: Array, *operands: int) -> Any:
        part = source[position(operands)]
        return unbox(part) if scalar else part

    return run


def _insert(op: Any) -> Function:
    (position,) = readers(op.static_position)

    def run(value: Any, dest: Array, *operands: int) -> Array:
        result = dest.copy()
        result[position(operands)] = value
        return result

    return run


def _from_elements(op: Any) -> Function:
    dtype, shape = dtype_of(op.result.type), shape_of(op.result.type)
    return lambda *values: np.array(values, dtype).reshape(shape)


def _extract_strided_slice(op: Any) -> Unary:
    part = tuple(
        slice(at, at + n * step, step)
        for at, n, step in zip(op.offsets, op.sizes, op.strides)
    )
    return lambda source: source[part]


def _interleave(op: Any) -> Binary:
    shape = shape_of(op.result.type)
    return lambda lhs, rhs: np.stack([lhs, rhs], -1).reshape(shape)


def _insert_strided_slice(op: Any) -> Function:
    shape = shape_of(op.value.type)
    sizes = [1] * (len(op.offsets) - len(shape)) + list(shape)
    part = tuple(slice(at, at + n) for at, n in zip(op.offsets, sizes))

    def run(value: Array, dest: Array) -> Array:
        result = dest.copy()
        result[part] = value.reshape(sizes)
        return result

    return run


def _shuffle(op: Any) -> Binary:
    rows = np.maximum(ints_of(op.mask), 0)
    return lambda v1, v2: np.concatenate([v1, v2])[rows]


# Masks ------------------------------------------------------------------------------


def _mask(shape: tuple[int, ...], bounds: Any) -> Array:
    mask = np.zeros(shape, BOOL)
    mask[tuple(slice(0, max(bound, 0)) for bound in bounds)] = True
    return mask


def _create_mask(op: Any) -> Function:
    shape = shape_of(op.result.type)
    return lambda *bounds: _mask(shape, bounds)


def _constant_mask(op: Any) -> Function:
    mask = _mask(shape_of(op.result.type), op.bounds)
    mask.flags.writeable = False
    return lambda: mask


# Reductions -------------------------------------------------------------------------


def _multi_reduction(op: Any) -> Function:
    type_ = op.source.type
    dtype, scalar = dtype_of(type_), not is_vector(op.result.type)
    shape = () if scalar else shape_of(op.result.type)
    dims = op.dims if op.name == "vector.multi_reduction" else (0,)
    kind = op.kind.kind
    reduce, join = reduction(kind, dtype), combine(kind, dtype)

    def run(source: Array, acc: Any = None) -> Any:
        result = reduce(source, dims).reshape(shape)
        if acc is not None:
            result = join(np.asarray(acc, dtype), result)
        return unbox(result) if scalar else result

    return run


def _contract(op: Any) -> Function:
    """Return sums of products in f64 (integers wrap); only the kind `add` exists."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    lhs, rhs, acc = ("".join(letters[dim] for dim in dims) for dims in op.maps)
    equation = f"{lhs},{rhs}->{acc}"
    type_ = op.result.type
    dtype, scalar = dtype_of(type_), not is_vector(type_)

    def exact(a: Array, b: Array, c: Array) -> Array:
        return np.einsum(equation, a, b) + c

    def wrapping(a: Array, b: Array, c: Array) -> Array:
        wide = (a.astype(np.int64), b.astype(np.int64), c)
        return np.asarray(exact(*wide)).astype(dtype)

    compute = wrapping if dtype.kind in "ib" else in_f64(exact, dtype)

    def run(a: Array, b: Array, c: Any) -> Any:
        result = compute(a, b, np.asarray(c, dtype))
        return unbox(result) if scalar else result

    return run


def _collapse(op: Any) -> Unary:
    groups: list[list[int]] = op.groups

    def run(source: View) -> View:
        sizes = [[source.sizes[dim] for dim in group] for group in groups]
        steps = [[source.strides[dim] for dim in group] for group in groups]
        return source._replace(
            sizes=tuple(map(prod, sizes)), strides=tuple(map(_fastest, sizes, steps))
        )

    return run


def _fastest(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """Return the stride of the last dimension with more than one element."""
    long = [stride for size, stride in zip(sizes, strides) if size != 1]
    return (long or strides)[-1]


def _expand(op: Any) -> Function:
    (shape,) = readers(op.static_output_shape)
    groups: list[list[int]] = op.groups

    def run(source: View, *operands: int) -> View:
        sizes = shape(operands)
        strides = [
            stride * prod(sizes[dim] for dim in group[place + 1 :])
            for group, stride in zip(groups, source.strides)
            for place in range(len(group))
        ]
        return source._replace(sizes=sizes, strides=tuple(strides))

    return run


def _load(op: Any) -> Function:
    shape = shape_of(op.result.type)

    def run(base: View, *indices: int) -> Array:
        return base.part(indices, shape, READ).copy()

    return run


def _store(op: Any) -> Function:
    shape = shape_of(op.value.type)

    def run(value: Array, base: View, *indices: int) -> None:
        base.part(indices, shape, WRITE)[...] = value

    return run


# Some of the elements ---------------------------------------------------------------


def _gather(base: View, indices: Any, places: Array, mask: Array, other: Array) -> Any:
    result = other.copy()
    window, at = base.around(indices, places[mask], READ)
    result[mask] = window[at]
    return result


def _scatter(base: View, indices: Any, places: Array, mask: Array, value: Any) -> None:
    window, at = base.around(indices, places[mask], WRITE)
    window[at] = value[mask]


def _masked(access: Function) -> Meaning:
    def run(base: View, *rest: Any) -> Any:
        *indices, mask, value = rest
        if mask.ndim != 1:
            raise InternalError("masked accesses are of vectors of rank 1")
        return access(base, indices, np.arange(len(mask)), mask, value)

    return always(run)


def _placed(access: Function) -> Meaning:
    def run(base: View, *rest: Any) -> Any:
        *indices, places, mask, value = rest
        return access(base, indices, places.astype(np.int64), mask, value)

    return always(run)


# Transfers --------------------------------------------------------------------------


def _dims(op: Any) -> list[int]:
    """Return the dimension of memory for each dimension of the vector."""
    return [each.position for each in op.permutation_map.data.results]


def _inside(
    op: Any,
    base: View,
    indices: Sequence[int],
    shape: tuple[int, ...],
    masks: Sequence[Array],
) -> Array:
    """Return which elements are in the memref (in-bounds dims are) and not masked."""
    inside = np.ones(shape, np.bool_)
    for mask in masks:
        inside &= mask
    along = np.indices(shape, sparse=True)
    for steps, dim, flag in zip(along, _dims(op), op.in_bounds.data):
        if isinstance(flag, IntegerAttr) and flag.value.data:
            continue
        place = indices[dim] + steps
        inside &= (place >= 0) & (place < base.sizes[dim])
    return inside


def _places(op: Any, base: View, shape: tuple[int, ...]) -> Array:
    """Return the offset of each element from the first, in elements of memory."""
    places = np.zeros(shape, np.int64)
    for steps, dim in zip(np.indices(shape, sparse=True), _dims(op)):
        places += steps * base.strides[dim]
    return places


def _flat(base: View, indices: Sequence[int]) -> View:
    return base._replace(offset=base.at(indices), sizes=(), strides=())


def _transfer_read(op: Any) -> Function:
    shape = shape_of(op.result.type)
    rank = len(op.indices)

    def run(base: View, *rest: Any) -> Array:
        indices, (padding, *masks) = rest[:rank], rest[rank:]
        mask = _inside(op, base, indices, shape, masks)
        other = np.full(shape, padding, base.dtype)
        return _gather(_flat(base, indices), (), _places(op, base, shape), mask, other)

    return run


def _transfer_write(op: Any) -> Function:
    shape = shape_of(op.value.type)
    rank = len(op.indices)

    def run(value: Array, base: View, *rest: Any) -> None:
        indices, masks = rest[:rank], rest[rank:]
        mask = _inside(op, base, indices, shape, masks)
        _scatter(_flat(base, indices), (), _places(op, base, shape), mask, value)

    return run


MEANINGS: dict[str, Meaning] = {
    "vector.broadcast": _broadcast,
    "vector.shape_cast": lambda op: methodcaller("reshape", shape_of(op.result.type)),
    "vector.step": _step,
    "vector.transpose": lambda op: methodcaller("transpose", op.dims),
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.from_elements": _from_elements,
    "vector.extract_strided_slice": _extract_strided_slice,
    "vector.insert_strided_slice": _insert_strided_slice,
    "vector.interleave": _interleave,
    "vector.shuffle": _shuffle,
    "vector.create_mask": _create_mask,
    "vector.constant_mask": _constant_mask,
    "vector.reduction": _multi_reduction,
    "vector.multi_reduction": _multi_reduction,
    "vector.contract": _contract,
    "memref.collapse_shape": _collapse,
    "memref.expand_shape": _expand,
    "memref.assume_alignment": same,
    "vector.load": _load,
    "vector.store": _store,
    "vector.maskedload": _masked(_gather),
    "vector.maskedstore": _masked(_scatter),
    "vector.gather": _placed(_gather),
    "vector.scatter": _placed(_scatter),
    "vector.transfer_read": _transfer_read,
    "vector.transfer_write": _transfer_write,
}
