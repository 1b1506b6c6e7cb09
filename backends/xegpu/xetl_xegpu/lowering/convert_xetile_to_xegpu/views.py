"""Memrefs: arguments, shared and private memory, and views of them.

MLIR counts an offset from the origin of the memory, not from the start of the view. So
a view has both: its own start, and the origin of its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects import builtin
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import (
    Index,
    MemRef,
    constant_index,
    fill_gaps,
    integer_width,
    is_memref,
    memref_type,
)
from xetl.dialects.kernel_attributes import SHARED
from xetl.dialects.memref_layout import memory_space_of, strides_of
from xetl.dialects.upstream import arith, memref
from xetl.dialects.upstream.elementwise import bit_width
from xetl.language.strides import row_major

from .conversion import Converter, Rule
from .fragments import Start, View


def stored_type(element: Attribute) -> Attribute:
    """Return the type of an element in memory: i1 as i8, index as i64, tf32 as f32."""
    if isinstance(element, builtin.IndexType):
        return builtin.i64
    if isinstance(element, builtin.FloatTF32Type):
        return builtin.f32
    width = integer_width(element)
    if width is not None and width < builtin.i8.bitwidth:
        return builtin.i8
    return element


def stored_bytes(element: Attribute) -> int:
    """Return the bytes of an element in memory."""
    return bit_width(stored_type(element)) // 8


def bind_arguments(c: Converter) -> None:
    """Bind each array argument of the kernel to a view of its memory."""
    block = c.kernel.body.block
    for argument in block.args:
        if is_memref(argument.type):
            _bind_argument(c, _without_offset(argument))
    inputs = [argument.type for argument in block.args]
    c.kernel.function_type = builtin.FunctionType.from_lists(inputs, [])


def _without_offset(argument: BlockArgument) -> SSAValue:
    """Give an array argument a type without offset: it points to the first element."""
    type_ = memref_type(argument)
    if not isinstance(type_.layout, builtin.StridedLayoutAttr):
        return argument
    layout = builtin.StridedLayoutAttr(type_.layout.strides, 0)
    shape, space = type_.get_shape(), type_.memory_space
    plain = builtin.MemRefType(type_.element_type, shape, layout, space)
    return Rewriter.replace_value_with_new_type(argument, plain)


def _bind_argument(c: Converter, argument: SSAValue) -> None:
    type_ = memref_type(argument)
    shape, strides = type_.get_shape(), strides_of(type_) or []
    rank = len(shape)
    results: Sequence[SSAValue] = ()
    if builtin.DYNAMIC_INDEX in shape or None in strides:
        results = c.emit.add(memref.ExtractStridedMetadataOp(argument)).results[2:]
    sizes = tuple(
        results[dim] if size == builtin.DYNAMIC_INDEX else size
        for dim, size in enumerate(shape)
    )
    steps = tuple(
        results[rank + dim] if step is None else step
        for dim, step in enumerate(strides)
    )
    start = Start(argument)
    c.set(argument, View(start, type_.element_type, sizes, steps, start))


def _metadata(c: Converter, op: memref.ExtractStridedMetadataOp) -> None:
    """Bind base, offset, sizes and strides to those that the view has."""
    view = c.view(op.source)
    base, offset, *others = op.results
    c.set(base, View(view.origin, view.element, (), (), view.origin))
    away = c.emit.minus(view.start.offset, view.origin.offset)
    for value, found in zip((offset, *others), (away, *view.sizes, *view.strides)):
        c.bind(value, c.index(found))


def _dim(c: Converter, op: memref.DimOp) -> None:
    number = constant_index(op.index)
    assert number is not None, "`legalize-vectors` chooses among all sizes"
    c.bind(op.result, c.index(c.view(op.source).sizes[number]))


def _reinterpret(c: Converter, op: memref.ReinterpretCastOp) -> None:
    view = c.view(op.source)
    (offset,) = op.mixed_offsets
    start = moved(c, view.origin, offset)
    sizes, strides = tuple(op.mixed_sizes), tuple(op.mixed_strides)
    c.set(op.result, replace(view, start=start, sizes=sizes, strides=strides))


def moved(c: Converter, start: Start, by: Index) -> Start:
    """Return the position moved by a number of elements."""
    return replace(start, offset=c.emit.plus(start.offset, by))


def _subview(c: Converter, op: memref.SubviewOp) -> None:
    view, start = c.view(op.source), c.view(op.source).start
    for offset, stride in zip(op.mixed_offsets, view.strides):
        start = moved(c, start, c.emit.times(offset, stride))
    steps = [*map(c.emit.times, op.mixed_strides, view.strides)]
    sizes = tuple(op.mixed_sizes[dim] for dim in op.kept_dims)
    strides = tuple(steps[dim] for dim in op.kept_dims)
    c.set(op.result, replace(view, start=start, sizes=sizes, strides=strides))


def _transpose(c: Converter, op: memref.TransposeOp) -> None:
    view = c.view(op.operands[0])
    sizes, strides = (
        tuple(each[dim] for dim in op.dims) for each in (view.sizes, view.strides)
    )
    c.set(op.results[0], replace(view, sizes=sizes, strides=strides))


# Memory of the kernel ---------------------------------------------------------------


def _alloc(c: Converter, op: memref.AllocOp | memref.AllocaOp) -> None:
    """Allocate shared memory; private memory is a part of it for each subgroup."""
    type_ = memref_type(op.result)
    if op.dynamic_sizes:
        raise c.refusal(op, "its size is not known when the kernel is compiled")
    shape = type_.get_shape()
    strides = tuple(step or 0 for step in strides_of(type_) or row_major(shape))
    elements = 1
    if 0 not in shape:
        elements += sum((n - 1) * step for n, step in zip(shape, strides))
    copies = 1 if memory_space_of(type_) == SHARED else c.subgroups
    flat = _shared(type_.element_type, elements * copies)
    root = c.emit.shared(object(), (), lambda: memref.AllocOp(flat))
    mine = c.emit.times(c.subgroup_id(), elements) if copies > 1 else 0
    start = Start(root, mine, SHARED)
    c.set(op.result, View(start, type_.element_type, shape, strides, start))


def _shared(element: Attribute, count: int) -> MemRef:
    """Return the type of ``count`` elements of shared memory."""
    space = builtin.IntegerAttr(SHARED, builtin.i64)
    return builtin.MemRefType(stored_type(element), [count], memory_space=space)


def _view(c: Converter, op: memref.ViewOp) -> None:
    """View bytes of shared memory as elements of another type."""
    type_ = memref_type(op.result)
    element = type_.element_type
    start = _retyped(c, c.view(op.source).start, element, c.emit.plus(0, op.byte_shift))
    sizes = fill_gaps(type_.get_shape(), op.sizes)
    strides = tuple(c.emit.row_major(sizes))
    c.set(op.result, View(start, element, sizes, strides, start))


def _retyped(c: Converter, start: Start, element: Attribute, by: Index) -> Start:
    """Return a position in memory of bytes, moved by ``by`` bytes, for another type."""
    shift, size = c.emit.plus(start.offset, by), stored_bytes(element)
    root = start.root
    if start.space != SHARED:
        return Start(address(c, Start(root, shift), 1))
    old = memref_type(root)
    count = prod(old.get_shape()) * stored_bytes(old.element_type) // size
    flat = _shared(element, count)
    if flat != old:
        zero = c.index(0)
        root = c.emit.shared(
            ("view", flat), [root], lambda: memref.ViewOp(start.root, zero, (), flat)
        )
    return Start(root, c.emit.divided(shift, size), SHARED)


# Addresses --------------------------------------------------------------------------


def address_index(c: Converter, start: Start, bytes_: int) -> SSAValue:
    """Return the address of an element of global memory, as an index."""
    root = start.root
    if is_memref(root.type):
        at = c.emit.shared(
            "pointer", [root], lambda: memref.ExtractAlignedPointerAsIndexOp(root)
        )
    else:
        at = c.emit.shared(
            "address", [root], lambda: arith.IndexCastOp(root, builtin.IndexType())
        )
    return c.index(c.emit.plus(at, c.emit.times(start.offset, bytes_)))


def address(c: Converter, start: Start, bytes_: int) -> SSAValue:
    """Return the address of an element of global memory, as an i64."""
    at = address_index(c, start, bytes_)
    return c.emit.shared("i64", [at], lambda: arith.IndexCastOp(at, builtin.i64))


RULES: dict[type[Operation], Rule] = {
    memref.ExtractStridedMetadataOp: _metadata,
    memref.DimOp: _dim,
    memref.CastOp: lambda c, op: c.set(op.result, c.view(op.source)),
    memref.ReinterpretCastOp: _reinterpret,
    memref.SubviewOp: _subview,
    memref.TransposeOp: _transpose,
    memref.ExtractAlignedPointerAsIndexOp: lambda c, op: c.bind(
        op.results[0], address_index(c, c.view(op.operands[0]).origin, 1)
    ),
    memref.AllocOp: _alloc,
    memref.AllocaOp: _alloc,
    memref.ViewOp: _view,
}
