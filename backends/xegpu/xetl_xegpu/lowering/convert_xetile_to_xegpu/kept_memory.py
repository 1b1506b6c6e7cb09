"""Shared memory of a single subgroup whose elements stay in registers.

For `xetile.cat` and `xetile.flip` the compiler knows which stored element each load
reads. The same is true for all shared memory that is accessed in one block, at known
offsets. Such memory is not written, and needs no barriers.

Before: ``store_tile %a, %m[0, 0]``, ``store_tile %b, %m[16, 0]``, a barrier, a load
After:  the fragments of %a and of %b
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from xetl.analysis.memory import is_pure, may_alias, roots_of
from xetl.dialects import xetile
from xetl.dialects.base import memref_type, operations_in, shape_of, vector_type
from xetl.dialects.kernel_attributes import subgroups_along_axes
from xetl.dialects.literals import splat_value
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, gpu, memref, scf, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.language.strides import row_major

from . import conversion, fragments
from .rearranging import elements_of, give

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Kept: TypeAlias = dict[Operation, conversion.Rule]

_MOST_BYTES = 1 << 13
"""Half of the registers of a subgroup; larger memory would be spilled."""
_OUTSIDE, _NEVER_STORED = -1, -2


def kept_memory(kernel: gpu.FuncOp) -> Kept:
    """Return rules for accesses to such memory, and for barriers if all is such."""
    allocations, kept = operations_in(kernel, memref.AllocOp), Kept()
    if prod(subgroups_along_axes(kernel)) > 1:
        return kept
    for each in allocations:
        kept |= _rules_of(each)
    if kept and all(each in kept for each in allocations) and _is_apart(kernel, kept):
        kept |= dict.fromkeys(operations_in(kernel, gpu.BarrierOp), conversion.nothing)
    return kept


def _is_apart(kernel: gpu.FuncOp, kept: Kept) -> bool:
    """Whether no lane may read what another one writes to other memory."""
    others = [each for each in operations_in(kernel, Operation) if each not in kept]
    kinds = {type(each) for each in others if not (each.regions or is_pure(each))}
    if not kinds <= {xetile.LoadTileOp, xetile.StoreTileOp, *_WITHOUT_EFFECTS}:
        return False
    read, written = (
        {root for op in others if isinstance(op, kind) for root in roots_of(op.tile)}
        for kind in (xetile.LoadTileOp, xetile.StoreTileOp)
    )
    return not any(may_alias(*pair) for pair in product(read, written))


_WITHOUT_EFFECTS = {xetile.PrefetchTileOp, gpu.BarrierOp, gpu.ReturnOp, scf.YieldOp}


def _rules_of(memory: memref.AllocOp) -> Kept:
    """Return the rules of one memory and of its uses; {}: it stays in memory."""
    type_ = memref_type(memory.result)
    shape, bits = type_.get_shape(), bit_width(type_.element_type)
    is_plain = tuple(strides_of(type_) or ()) == tuple(row_major(shape))
    uses = _uses(memory.result)
    if uses is None or not is_plain or not 0 < prod(shape) * bits <= 8 * _MOST_BYTES:
        return {}
    kept: Kept = dict.fromkeys((memory, *uses), conversion.nothing)
    accesses = [op for op in uses if isinstance(op, _ACCESSES)]
    block = accesses[0].parent if accesses else None
    if block is None or any(op.parent is not block for op in accesses):
        return {}
    content, stored = np.full(shape, _NEVER_STORED), list[SSAValue]()
    count, wanted = 0, set(accesses)
    for op in block.ops:
        if op not in wanted:
            continue
        places = _places(op, shape)
        if places is None:
            return {}
        if isinstance(op, xetile.StoreTileOp):
            stored.append(op.value)
            content.flat[places] = count + np.arange(places.size).reshape(places.shape)
            count += places.size
            continue
        found = np.where(places < 0, _OUTSIDE, content.flat[places])
        if _NEVER_STORED in found:
            return {}
        kept[op] = partial(_give_moved, stored=list(stored), places=found)
    return kept


_ACCESSES = (xetile.StoreTileOp, xetile.LoadTileOp, xetile.LoadGatherOp)


def _uses(memory: SSAValue) -> list[Operation] | None:
    """Return all uses of a memory through tiles and views. None: there are others."""
    found: list[Operation] = []
    for op in (use.operation for use in memory.uses):
        found.append(op)
        if isinstance(op, xetile.InitTileOp | memref.ReinterpretCastOp):
            behind = _uses(op.result)
            if behind is None:
                return None
            found += behind
        elif not isinstance(op, _ACCESSES) or len(op.operands) > 2:
            return None
    return found


def _places(op: Any, shape: Sequence[int]) -> Numbers | None:
    """Return the linear indices of the accessed elements, in rows and columns.

    Return None if they are unknown, or if some are outside of the memory.
    """
    tile = op.tile.owner
    if not isinstance(tile, xetile.InitTileOp):
        return None
    base = tile.source.owner
    if isinstance(base, memref.ReinterpretCastOp):
        if base.mixed_offsets != (0,) or base.mixed_strides != (1,):
            return None
        shape = (prod(shape),)
        if base.mixed_sizes != shape:
            return None
    if isinstance(op, xetile.LoadGatherOp):
        mask, places = (_known_numbers(each) for each in (op.mask, tile.indices))
        if places is None or mask is None or len(shape) != 1 or not mask.all():
            return None
        inside = (places >= 0) & (places < shape[0])
        return np.where(inside, places, _OUTSIDE)
    offsets = [at for at in tile.mixed_offsets if isinstance(at, int)]
    if tile.mixed_sizes or len(offsets) != len(shape) or len(op.results) > 1:
        return None
    ends = [at + n for at, n in zip(offsets, tile.result.type.shape)]
    if min(offsets) < 0 or any(end > n for end, n in zip(ends, shape)):
        return None
    numbers = np.arange(prod(shape)).reshape(shape)
    return numbers[tuple(slice(a, b) for a, b in zip(offsets, ends))]


def _known_numbers(value: SSAValue | None) -> Numbers | None:
    """Return the elements of a vector computed from constants and ranges, or None."""
    op = None if value is None else value.owner
    if value is None or not isinstance(op, Operation):
        return None
    shape = shape_of(value.type)
    if isinstance(op, vector.StepOp):
        return np.arange(*shape)
    if isinstance(op, arith.ConstantOp):
        number = splat_value(op.value)
        return None if number is None else np.full(shape, number)
    make = _COMPUTED.get(type(op))
    if make is None or getattr(op, "predicate_name", "ult") != "ult":
        return None
    operands = [_known_numbers(each) for each in op.operands]
    if any(each is None for each in operands):
        return None
    return make(*operands, *([shape] if isinstance(op, _RESHAPING) else []))


def _is_below(left: Numbers, right: Numbers) -> Numbers:
    """Compare as unsigned numbers."""
    return left.astype(np.uint64) < right.astype(np.uint64)


_COMPUTED: dict[type[Operation], Callable[..., Numbers]] = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.AndiOp: np.bitwise_and,
    arith.SelectOp: np.where,
    arith.CmpiOp: _is_below,
    vector.ShapeCastOp: np.reshape,
    xetile.TileBroadcastOp: np.broadcast_to,
}
_RESHAPING = (vector.ShapeCastOp, xetile.TileBroadcastOp)


def _give_moved(
    c: conversion.Converter, op: Any, *, stored: Sequence[SSAValue], places: Numbers
) -> None:
    """Replace a load by elements of the values that were stored before."""
    sides = [
        fragments.as_matrix(elements_of(c.fragments(each))).ravel() for each in stored
    ]
    found = np.concatenate(sides)[places]
    type_ = vector_type(op.results[0])
    found[places == _OUTSIDE] = c.emit.constant(0, type_.element_type)
    matrix = found.reshape(fragments.matrix_shape(type_.get_shape()))
    give(c, op.results[0], fragments.as_vector(matrix, type_.get_shape()))
