"""drop-spare-kernel: erase a kernel or its twin if no block messages are used.

With ``keeps_one`` the twin is also erased if the kernel uses them: the first launch
that needs the twin compiles it.

Why: the launch takes the twin if an array does not fit block messages. A kernel without
block messages accepts any array, so its twin would never run. GPUs keep the kernel,
because it loads lines of 16 elements. If messages are emulated, the twin stays instead:
it calls one function for a block, where the kernel has 16 or 32 masked loads in a row,
and OpenCL's driver for CPUs takes ten times as long to build these.

Before: ``gpu.func @f``, which names no ``xegpu.block_arguments``, and
        ``gpu.func @f_unaligned``
After:  one of them

Left alone: kernels that move blocks of an array by messages; kernels without a twin.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from xetl.devices import find_device
from xetl.dialects.base import operations_in
from xetl.dialects.upstream import gpu
from xetl.ir.builder import Pass
from xetl.transforms.choose_inner_blocks import DEVICE
from xetl_xegpu.limits import UNALIGNED
from xetl_xegpu.lowering.record_arguments import moved_arguments


@dataclass(frozen=True)
class DropSpareKernelPass(Pass):
    keeps_one: bool = False

    def rewrite(self, op: ModuleOp) -> None:
        kernels = operations_in(op, gpu.FuncOp)
        named = {kernel.sym_name.data: kernel for kernel in kernels}
        device = op.attributes.get(DEVICE)
        is_emulated = (
            isinstance(device, StringAttr) and find_device(device.data).emulated
        )
        for name, kernel in named.items():
            twin = named.get(name + UNALIGNED)
            moves_blocks = bool(moved_arguments(kernel))
            if twin is None or (moves_blocks and not self.keeps_one):
                continue
            Rewriter.erase_op(kernel if is_emulated and not moves_blocks else twin)
