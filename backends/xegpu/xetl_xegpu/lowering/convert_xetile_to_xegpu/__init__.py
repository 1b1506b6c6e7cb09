"""convert-xetile-to-xegpu: tiles become messages, vectors fragments of 16 columns.

Why: after this pass each operation moves or computes as much as one instruction.
Descriptors, masks and offsets are hoisted out of loops. Neighbouring blocks share a
message. A tile that only products or transposes read is loaded in their layout.

Before: ``xetile.load_tile %b : !xetile.tile<32x64xbf16, ...>``, ``xetile.tile_mma``
After:  four ``xegpu.load_nd %t[%y, %x] <{packed}>`` of ``vector<16x16x2xbf16>``,
``xegpu.dpas`` of ``vector<8x16xbf16>`` and ``vector<8x16x2xbf16>``

Left alone: scalars. The module names the device (`xetile.device`). In a kernel marked
`xegpu.no_blocks` lanes move the elements under masks, which works for any memory.
`xegpu.block_arguments` tells the launch which arrays it must check. With
``moves_rest``, arrays of one dimension need not end at a multiple of 64 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue

from xetl.devices import Device, find_device
from xetl.dialects.base import Index, dense_i64, ints_of, is_vector, operations_in
from xetl.dialects.upstream import gpu
from xetl.dialects.upstream import xegpu as hints
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.xetile import AssertOp, PrintOp
from xetl.errors import CompileError
from xetl.ir.builder import Pass
from xetl.transforms.diagnostics import DiagnosticEmitter, DiagnosticKind
from xetl_xegpu import dialect as xegpu
from xetl_xegpu.dialect.stage import set_launch_facts
from xetl_xegpu.lowering.record_arguments import (
    BLOCK_ARGUMENTS,
    FOLDED,
    SLICED_ARGUMENTS,
)

from . import (
    control,
    element_access,
    elementwise,
    products,
    rearranging,
    reductions,
    tiles,
    vector_parts,
    views,
)
from .conversion import Converter, Rule, nothing
from .fragments import LANES
from .kept_memory import kept_memory
from .plan import Plan


def _number(find: Callable[[Converter, Any], Index]) -> Rule:
    """Return the rule of an operation whose result is the index that ``find`` gives."""
    return lambda c, op: c.bind(op.results[0], c.index(find(c, op)))


# Subgroups --------------------------------------------------------------------------


def _along(c: Converter, axis: int) -> Index:
    """Return the index of this subgroup along an axis; x is the fastest."""
    counts, number = c.along_axes, c.subgroup_id()
    if counts[axis] == 1:
        return 0
    for before in counts[:axis]:
        number = c.emit.divided(number, before)
    return number if axis == 2 else c.emit.remainder(number, counts[axis])


def _block_dim(c: Converter, op: gpu.DimensionOp) -> Index:
    return c.along_axes[op.axis]


def _global_id(c: Converter, op: gpu.DimensionOp) -> Index:
    axis = op.axis
    block = c.emit.shared(("block", axis), (), lambda: gpu.BlockIdOp(op.dimension))
    first = c.emit.times(block, c.along_axes[axis])
    return c.emit.plus(first, _along(c, axis))


# Debugging --------------------------------------------------------------------------


def _record(c: Converter, op: PrintOp | AssertOp) -> None:
    # The operands are scalars and fragments; shapes are those of the vectors.
    values: list[SSAValue] = []
    shapes: list[tuple[int, ...] | None] = []
    for argument in op.arguments:
        if not is_vector(argument.type):
            values.append(argument)
            shapes.append(None)
            continue
        pieces = c.fragments(argument)
        values += pieces.parts
        grid = pieces.grid
        flat = len(pieces.shape) == 1
        shapes.append(pieces.shape if flat else (grid.rows, grid.columns))
    make = partial(
        xegpu.PrintOp if isinstance(op, PrintOp) else xegpu.AssertOp,
        template=op.template,
        shapes=shapes,
        unsigned=ints_of(op.unsigned),
    )
    c.emit.add(make(*op.operands[: isinstance(op, AssertOp)], values))


_RULES: dict[type[Operation], Rule] = {
    **elementwise.RULES,
    **rearranging.RULES,
    **vector_parts.RULES,
    **tiles.RULES,
    **element_access.RULES,
    **products.RULES,
    **reductions.RULES,
    **views.RULES,
    **control.RULES,
    # At subgroup level a thread is a subgroup.
    gpu.ThreadIdOp: _number(lambda c, op: _along(c, op.axis)),
    gpu.BlockDimOp: _number(_block_dim),
    gpu.GlobalIdOp: _number(_global_id),
    gpu.SubgroupIdOp: _number(lambda c, _: c.subgroup_id()),
    gpu.NumSubgroupsOp: _number(lambda c, _: c.subgroups),
    gpu.SubgroupSizeOp: _number(lambda _c, _op: LANES),
    gpu.LaneIdOp: _number(lambda _c, _op: 0),
    # Kept even for a single subgroup: its lanes read what other lanes wrote, and a
    # compiler that sees the code of one lane could move such a load before the stores.
    gpu.BarrierOp: Converter.keep,
    PrintOp: _record,
    AssertOp: _record,
    hints.CompileHintOp: nothing,  # for another compiler
    xegpu.FenceOp: Converter.keep,
}


@dataclass(frozen=True)
class ConvertXetileToXegpuPass(Pass):
    moves_rest: bool = False

    def rewrite(self, op: ModuleOp) -> None:
        name = op.attributes.get("xetile.device")
        device = find_device(name.data if isinstance(name, StringAttr) else "pvc")
        for kernel in operations_in(op, gpu.FuncOp):
            _convert(kernel, device, moves_rest=self.moves_rest)


_MOST_FILES = 16


def _check_sizes(c: Converter, device: Device) -> None:
    """Refuse values many times larger than the registers: huge code that spills."""
    file = device.registers[1] * device.register_bytes
    for op in c.kernel.walk():
        for type_ in (each.type for each in op.results if is_vector(each.type)):
            size = prod(type_.get_shape()) * bit_width(type_.element_type) // 8
            if size > _MOST_FILES * file:
                raise DiagnosticEmitter(c.kernel).error(
                    DiagnosticKind(CompileError, "X0212", "X0212"),
                    op,
                    f"this value is too large for `{device.name}`",
                    notes=[
                        f"each of {c.subgroups} subgroups has {size:,} bytes of it, "
                        f"and {file:,} bytes of registers"
                    ],
                    help="make tiles smaller, such as 256 x 256, and launch more "
                    "programs",
                )


def _convert(kernel: gpu.FuncOp, device: Device, *, moves_rest: bool) -> None:
    kept = kept_memory(kernel)
    plan = Plan(kernel, kept, moves_rest=moves_rest)
    c = Converter(kernel, device, plan, _RULES, elementwise.each_part, control.carried)
    _check_sizes(c, device)
    old = list(kernel.body.block.ops)
    views.bind_arguments(c)
    c.run_all(old)
    c.finish()
    set_launch_facts(kernel, c.subgroups * device.subgroup_size, device.subgroup_size)
    kernel.attributes[BLOCK_ARGUMENTS] = dense_i64(sorted(c.block_arguments))
    if plan.folds:
        kernel.attributes[FOLDED] = UnitAttr()
    if c.sliced_arguments:
        kernel.attributes[SLICED_ARGUMENTS] = dense_i64(sorted(c.sliced_arguments))
