"""The kernel itself: its arguments as the host passes them, its workgroup."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerType,
    StridedLayoutAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from xetl.devices import Device
from xetl.dialects.base import Index, ints_of, memref_type
from xetl.dialects.kinds_of_types import is_integer_attr, is_memref
from xetl.dialects.memref_layout import strides_of
from xetl.dialects.upstream import arith, gpu
from xetl.transforms.diagnostics import refusal
from xetl_xegpu import simt
from xetl_xegpu.dialect.stage import SUBGROUP_SIZE
from xetl_xegpu.lowering.lanes.control import Lower
from xetl_xegpu.lowering.lanes.held import LANES
from xetl_xegpu.lowering.lanes.memory import is_shared, product
from xetl_xegpu.lowering.lanes.state import Lanes, Memory


def lower_kernel(kernel: gpu.FuncOp, device: Device, lower: Lower) -> simt.FuncOp:
    """What one lane of the kernel does."""
    subgroups = subgroups_of(kernel)
    entry = Block()
    lanes = Lanes(entry, kernel, subgroups, device)
    for argument in kernel.body.block.args:
        _argument(lanes, argument)
    entry.insert_arg(i64, len(entry.args))  # the status words
    lower(lanes, kernel.body.block)
    lanes.finish()
    made = simt.FuncOp(
        kernel.sym_name.data,
        Region(entry),
        [subgroups * LANES, 1, 1],
        lanes.local_bytes,
        location=kernel.location,
    )
    said = (gpu.KERNEL, SUBGROUP_SIZE)
    made.attributes |= {k: v for k, v in kernel.attributes.items() if k not in said}
    return made


def subgroups_of(kernel: gpu.FuncOp) -> int:
    """How many subgroups a workgroup has."""
    size = kernel.attributes.get(SUBGROUP_SIZE)
    lanes = size.value.data if is_integer_attr(size) else LANES
    extents = ints_of(kernel.known_block_size)
    if (
        lanes != LANES
        or not extents
        or prod(extents) != extents[0]
        or extents[0] % lanes
    ):
        raise refusal(
            kernel,
            "a workgroup is whole subgroups of 16 lanes along x",
            "say `known_block_size = array<i32: n, 1, 1>`, n a multiple of 16",
        )
    return extents[0] // LANES


def _argument(lanes: Lanes, argument: SSAValue) -> None:
    """A number as it is; an array: address, dynamic sizes, dynamic strides.

    The address is that of element 0, whatever offset the type speaks of.
    """
    if not is_memref(argument.type):
        lanes.hold(argument, _next(lanes, argument.type))
        return
    type_ = memref_type(argument)
    layout, strides = type_.layout, strides_of(type_)
    if is_shared(type_) or strides is None:
        raise lanes.refuse(
            lanes.source,
            f"the host cannot pass an argument of type {type_}",
            "take global memory that has strides",
        )
    address = _next(lanes, i64)
    sizes: list[Index] = [
        _index(lanes) if size == DYNAMIC_INDEX else size for size in type_.get_shape()
    ]
    if isinstance(layout, StridedLayoutAttr):
        steps: list[Index] = [_index(lanes) if s is None else s for s in strides]
    else:
        steps = _row_major(lanes, sizes)
    element = type_.element_type
    lanes.memories[argument] = Memory(address, tuple(sizes), tuple(steps), element)


def _row_major(lanes: Lanes, sizes: list[Index]) -> list[Index]:
    """The strides of a memref that says none."""
    steps: list[Index] = [1]
    for size in reversed(sizes[1:]):
        steps.insert(0, product(lanes, steps[0], size))
    return steps[: len(sizes)]


def _next(lanes: Lanes, type_: Attribute) -> SSAValue:
    """A new argument of the lane's function; integers have 64 bits."""
    is_integer = isinstance(type_, IndexType | IntegerType)
    passed = i64 if is_integer else type_
    new = lanes.entry.insert_arg(passed, len(lanes.entry.args))
    if passed == type_:
        return new
    if isinstance(type_, IndexType):
        return lanes.emit(arith.IndexCastOp(new, type_))
    return lanes.emit(arith.TrunciOp(new, type_))


def _index(lanes: Lanes) -> SSAValue:
    return _next(lanes, IndexType())
