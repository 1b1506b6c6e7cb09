"""Convert a function of a text to a kernel in the form that backends take.

Before: a function such as ``func.func @f(%x: i32, %m: memref<f16>) {...; return}``
After:  a module with one ``gpu.func ... kernel``. Its scalar arguments are i64, f64, i1
or another type of 64 bits; its layouts are strides; it has the attributes of design
page 0001, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from .base import integer_width, is_memref, operations_in
from .kernel_attributes import (
    LEVEL,
    SHARED,
    STAGE,
    STORED,
    SUBGROUP,
    TEXT,
    WORKGROUP,
    attributes_of_kernel,
)
from .memref_layout import memory_space_of, strides_of
from .upstream import arith, func, gpu, memref
from .xetile import InitTileOp

if TYPE_CHECKING:
    from .text import Function


def launch_form(
    function: Function,
    others: Sequence[Function],
    names: Sequence[str],
    aliases: Sequence[int],
    subgroups: tuple[int, int, int],
) -> builtin.ModuleOp:
    """Return a new module with ``function`` as its kernel, and the functions it calls.

    Args:
        function: the function of the text; it is not changed.
        others: functions that it may call; those that it does not call are left out.
        names, aliases: see `attributes_of_kernel`.
        subgroups: subgroups of a workgroup along x, y and z, for a kernel at subgroup
            level.
    """
    clone = function.clone()
    if STORED in clone.attributes:  # it was printed at a later stage
        return builtin.ModuleOp([clone])
    body = clone.body
    clone.detach_region(body)
    _attributions(body.block, len(function.function_type.inputs.data), function)
    for op in operations_in(body.block, func.ReturnOp):
        Rewriter.replace_op(op, gpu.ReturnOp())
    _strided_layouts(body)
    for argument in list(body.block.args):
        _widen(argument)
        _scatter_base(argument)
    kernel = gpu.FuncOp(function.sym_name.data, body, location=function.location)
    level = function.attributes.get(LEVEL)
    is_subgroup = isinstance(level, builtin.StringAttr) and level.data == SUBGROUP
    name, counts = (SUBGROUP, subgroups) if is_subgroup else (WORKGROUP, None)
    kernel.attributes |= attributes_of_kernel(name, names, aliases, counts, TEXT)
    callees = [other.clone() for other in _called(body, others)]
    named = _globals_for(function, kernel)
    inner = Region(Block([*named, kernel, *callees]))
    made = gpu.ModuleOp(function.sym_name.data, inner)
    if STAGE in function.attributes:
        made.attributes[STAGE] = function.attributes[STAGE]
    return builtin.ModuleOp([made])


def _called(body: Region, others: Sequence[Function]) -> list[Function]:
    """Return the functions that a body calls, directly or indirectly."""
    found: list[Function] = []
    bodies = [body]
    for each in bodies:  # the list grows in the loop
        calls = operations_in(each, func.CallOp)
        names = {call.callee.root_reference.data for call in calls}
        new = [f for f in others if f.sym_name.data in names and f not in found]
        found += new
        bodies += [function.body for function in new]
    return found


def _globals_for(function: Function, kernel: Operation) -> list[Operation]:
    """Return copies of the globals beside the function, if the kernel reads any."""
    reads = bool(operations_in(kernel, memref.GetGlobalOp))
    beside = function.parent.ops if reads and function.parent is not None else ()
    return [op.clone() for op in beside if isinstance(op, memref.GlobalOp)]


def _attributions(block: Block, count: int, function: Function) -> None:
    """Replace memory in the signature of a function by allocations in its body."""
    for argument in list(block.args)[count:]:
        assert is_memref(argument.type)
        op = memref.AllocOp(argument.type)
        op.location = function.location
        Rewriter.insert_op(op, InsertPoint.at_start(block))
        argument.replace_all_uses_with(op.results[0])
        block.erase_arg(argument)


def _strided_layouts(body: Region) -> None:
    """Convert layouts that are affine maps to strides, in all types of a body."""
    inside = [b for op in body.walk() for region in op.regions for b in region.blocks]
    for block in [body.block, *inside]:
        for value in [*block.args, *(r for op in block.ops for r in op.results)]:
            new = _strided(value.type)
            if new is not value.type:
                Rewriter.replace_value_with_new_type(value, new)


def _strided(type_: Attribute) -> Attribute:
    """Return a memref type with a strided layout and a number as memory space."""
    if not is_memref(type_):
        return type_
    layout, space = type_.layout, type_.memory_space
    strides = strides_of(type_) if isinstance(layout, builtin.AffineMapAttr) else None
    if strides is not None:
        layout = builtin.StridedLayoutAttr(strides, 0)
    number = memory_space_of(type_)
    if isinstance(space, builtin.UnregisteredAttr) and number is not None:
        space = (
            builtin.IntegerAttr(number, builtin.i64) if number else builtin.NoneAttr()
        )
    if layout is type_.layout and space is type_.memory_space:
        return type_
    return builtin.MemRefType(type_.element_type, type_.get_shape(), layout, space)


def _widen(argument: SSAValue) -> None:
    """Pass a scalar as i64 or f64, and convert it to its type at the entry."""
    type_: Attribute = argument.type
    narrow: Operation | None = None
    if integer_width(type_) not in (None, 1, 64):
        new = Rewriter.replace_value_with_new_type(argument, builtin.i64)
        narrow = arith.TrunciOp(new, type_)
    elif isinstance(type_, builtin.AnyFloat) and not isinstance(
        type_, builtin.Float64Type
    ):
        new = Rewriter.replace_value_with_new_type(argument, builtin.f64)
        narrow = arith.TruncfOp(new, type_)
    else:
        return
    block = new.owner
    assert isinstance(block, Block)
    function = block.first_op
    narrow.location = narrow.location if function is None else function.location
    new.replace_uses_with_if(narrow.results[0], lambda use: use.operation is not narrow)
    Rewriter.insert_op(narrow, InsertPoint.at_start(block))


def _scatter_base(argument: SSAValue) -> None:
    """Give ``memref<f16>``, the base of scatter tiles, a dimension of dynamic size."""
    type_ = argument.type
    if not is_memref(type_) or type_.get_shape():
        return
    users = [use.operation for use in argument.uses]
    tiles = [op for op in users if isinstance(op, InitTileOp) and op.indices]
    if len(tiles) != len(users) or memory_space_of(type_) == SHARED:
        return
    long = builtin.MemRefType(
        type_.element_type, [builtin.DYNAMIC_INDEX], type_.layout, type_.memory_space
    )
    new = Rewriter.replace_value_with_new_type(argument, long)
    block = new.owner
    assert isinstance(block, Block)
    zero = arith.ConstantOp.index(0)
    size = memref.DimOp(new, zero.result)
    for tile in tiles:
        made = InitTileOp(
            new,
            [],
            tile.result.type,
            sizes=[size.result],
            strides=[1],
            indices=tile.indices,
            location=tile.location,
        )
        Rewriter.replace_op(tile, made)
    Rewriter.insert_op([zero, size], InsertPoint.at_start(block))
