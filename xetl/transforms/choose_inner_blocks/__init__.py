"""Cut tiles, and the values between, into the blocks one instruction works on.

*What*: every tile of rank 2 that is loaded, stored or prefetched gets `inner_blocks`,
every operand of a product and every value between rank 4.
*Why*: a GPU moves and multiplies blocks of a few sizes (`xetl/devices.py`).  Which ones
is decided here, once, from the uses backwards, so that data is rearranged as little as
possible; `tile_pack` and `tile_unpack` stand only where two sizes meet.
*Left alone*: scattered tiles; functions at workgroup level; operations that no block
fits, which get the attribute `xetile.unblocked` and a remark.

before: %v = xetile.load_tile %t : tile<32x32xf16> -> vector<32x32xf16>
        %c = xetile.tile_mma %v, ...
after:  %v = xetile.load_tile %t : tile<32x32xf16, inner_blocks = [8, 16]>
                                   -> vector<4x2x8x16xf16>
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.devices import Device, find_device
from xetl.dialects.kernel_attributes import LEVEL, WORKGROUP
from xetl.dialects.upstream import func, gpu
from xetl.dialects.walk import operations_in
from xetl.ir.passes import Pass
from xetl.transforms.choose_inner_blocks.block_constraints import is_uniform
from xetl.transforms.choose_inner_blocks.plan import make_plan, types_to_unblock
from xetl.transforms.choose_inner_blocks.rewrite import DEVICE, carry_out
from xetl.transforms.unblock_values import unblock, unblocked_tile


@dataclass(frozen=True)
class ChooseInnerBlocksPass(Pass):
    """See the module docstring."""

    device: str = "pvc"

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite the functions of the module in place."""
        device = find_device(self.device)
        functions = operations_in(op, func.FuncOp, gpu.FuncOp)
        for function in functions:
            if function.attributes.get(LEVEL) != StringAttr(WORKGROUP):
                _choose(function, device)
        op.attributes[DEVICE] = StringAttr(device.name)


def _choose(function: Operation, device: Device) -> None:
    # Blocks of values that the user wrote say how to compute, not what: they are ours
    # to choose.  Those of tiles stay where the device can move them.
    dropped = types_to_unblock(function.walk(), device)
    unblock(function, lambda each: unblocked_tile(each) if each in dropped else each)
    copies = split_uniform(function)
    carry_out(make_plan(function, device))
    merge_uniform(copies)


Copies = list[list[Operation]]
"""For each vector the operations that are copies of one."""


def split_uniform(function: Operation) -> Copies:
    """Copy vectors of one number until each has one reader."""
    return [_split(op) for op in list(function.walk()) if is_uniform(op)]


def _split(op: Operation) -> list[Operation]:
    copies = [op]
    for use in list(op.results[0].uses)[1:]:
        new = op.clone()
        new.location = op.location
        new.results[0].name_hint = op.results[0].name_hint
        Rewriter.insert_op(new, InsertPoint.after(op))
        use.operation.operands[use.index] = new.results[0]
        copies.append(new)
    return copies


def merge_uniform(copies: Copies) -> None:
    """Make one of copies that turned out the same."""
    for group in copies:
        kept: dict[object, Operation] = {}
        for op in group:
            first = kept.setdefault(op.results[0].type, op)
            if first is not op:
                Rewriter.replace_op(op, [], [first.results[0]])
