"""convert-xetile-to-xegpu: tiles become messages, values fragments of 16 columns.

Why: from here on everything is what one instruction moves or computes.  Descriptors,
masks and offsets leave the loops they do not depend on; neighbouring blocks go in one
message; what only a product or a transpose reads is loaded as these want it.

Before: ``xetile.load_tile %b : !xetile.tile<32x64xbf16, ...>``, ``xetile.tile_mma``
After:  four ``xegpu.load_nd %t[%y, %x] <{packed}>`` of ``vector<16x16x2xbf16>``,
``xegpu.dpas`` of ``vector<8x16xbf16>`` and ``vector<8x16x2xbf16>``

Left alone: scalars.  The module names the device (`xetile.device`); a kernel marked
`xegpu.no_blocks` moves its elements by lanes with masks, which any memory allows.
`xegpu.block_arguments` tells the launch which arrays it must check.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xetl.devices import Device, find_device
from xetl.dialects.upstream import gpu
from xetl_xegpu.dialect.stage import set_launch_facts
from xetl_xegpu.lowering.convert_xetile_to_xegpu import (
    control,
    element_access,
    elementwise,
    products,
    program,
    rearranging,
    reductions,
    tiles,
    vector_parts,
    views,
)
from xetl_xegpu.lowering.convert_xetile_to_xegpu.conversion import Converter, Rule
from xetl_xegpu.lowering.convert_xetile_to_xegpu.plan import Plan
from xetl_xegpu.lowering.record_arguments import BLOCK_ARGUMENTS

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
    **program.RULES,
}


class ConvertXetileToXegpuPass(ModulePass):
    """See the module docstring."""

    name = "convert-xetile-to-xegpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the kernels of the module in place."""
        name = op.attributes.get("xetile.device")
        device = find_device(name.data if isinstance(name, StringAttr) else "pvc")
        for kernel in [each for each in op.walk() if isinstance(each, gpu.FuncOp)]:
            _convert(kernel, device)


def _convert(kernel: gpu.FuncOp, device: Device) -> None:
    plan = Plan(kernel)
    c = Converter(kernel, device, plan, _RULES, elementwise.each_part, control.carried)
    old = list(kernel.body.block.ops)
    views.bind_arguments(c)
    c.run_all(old)
    c.finish()
    set_launch_facts(kernel, c.subgroups * device.subgroup_size, device.subgroup_size)
    used = DenseArrayBase.from_list(i64, sorted(c.block_arguments))
    kernel.attributes[BLOCK_ARGUMENTS] = used
