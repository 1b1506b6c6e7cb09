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

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xetl.devices import Device, find_device
from xetl.dialects.kernel_attributes import LEVEL, WORKGROUP
from xetl.dialects.upstream import func, gpu
from xetl.transforms.blocks.given import types_to_unblock
from xetl.transforms.blocks.legality import DEVICE
from xetl.transforms.blocks.plan import make_plan
from xetl.transforms.blocks.rewrite import carry_out
from xetl.transforms.blocks.uniform import merge_uniform, split_uniform
from xetl.transforms.unblock_values import unblock, unblocked_tile


@dataclass(frozen=True)
class ChooseInnerBlocksPass(ModulePass):
    """See the module docstring."""

    name = "choose-inner-blocks"

    device: str = "pvc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the functions of the module in place."""
        device = find_device(self.device)
        functions = [o for o in op.walk() if isinstance(o, func.FuncOp | gpu.FuncOp)]
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
