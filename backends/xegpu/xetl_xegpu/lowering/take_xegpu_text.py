"""take-xegpu-text: a text of XeGPU gets the attributes that the conversion sets.

*What*: the module gets the attributes of `record-arguments`, and each kernel the number
of its lanes. Messages that the device lacks, and layouts that no message has, are
refused with their line.
*Why*: a user's text begins at stage ``xegpu``, after the passes that set these.
*Left alone*: modules with recorded arguments.

Before: ``gpu.func @k(%a: memref<8x64xf16>) kernel``
After:  the same with ``known_block_size`` and ``intel_reqd_sub_group_size``, in a
        module with ``xegpu.arguments`` and ``xegpu.stored``

``xegpu.block_arguments`` is empty: a launch does not check the arrays, and messages are
those of the text. If they are emulated, an illegal message is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from xetl.devices import Device, find_device
from xetl.dialects.base import dense_i64, operations_in
from xetl.dialects.kernel_attributes import subgroups_along_axes
from xetl.dialects.upstream import gpu
from xetl.ir.builder import Pass
from xetl.transforms.check_barriers import CheckBarriersPass
from xetl.transforms.diagnostics import refusal
from xetl_xegpu.dialect import LayoutAttr, TensorDescType
from xetl_xegpu.dialect.stage import set_launch_facts, why_no_message
from xetl_xegpu.lowering.convert_xetile_to_xegpu.fragments import LANE_DATA
from xetl_xegpu.lowering.record_arguments import (
    ARGUMENTS,
    BLOCK_ARGUMENTS,
    RecordArgumentsPass,
)
from xetl_xegpu.simt import SUBGROUP_SIZE


@dataclass(frozen=True)
class TakeXegpuTextPass(Pass):
    device: str = "pvc"

    def rewrite(self, op: ModuleOp) -> None:
        if ARGUMENTS in op.attributes:
            return
        RecordArgumentsPass().rewrite(op)
        CheckBarriersPass().rewrite(op)
        for kernel in operations_in(op, gpu.FuncOp):
            _check(kernel, find_device(self.device))
            x, y, z = subgroups_along_axes(kernel)
            set_launch_facts(kernel, x * y * z * SUBGROUP_SIZE, SUBGROUP_SIZE)
            kernel.attributes[BLOCK_ARGUMENTS] = dense_i64([])


def _check(kernel: gpu.FuncOp, device: Device) -> None:
    for op in kernel.walk():
        problem = why_no_message(op, device)
        if problem is not None:
            raise refusal(op, problem, "docs/design/0005-xegpu.md says where to look")
        if not all(map(_is_followed, _layouts_of(op))):
            help_ = f"give `lane_layout = [1, {SUBGROUP_SIZE}]`, `lane_data = [1, 1]`"
            raise refusal(op, "no message spreads a block as its layout says", help_)


def _layouts_of(op: Operation) -> Iterator[Attribute]:
    for result in op.results:
        if isinstance(result.type, TensorDescType):
            yield result.type.layout
    yield from op.properties.values()


def _is_followed(given: Attribute) -> bool:
    if not isinstance(given, LayoutAttr):
        return True
    lists = given.lists
    if lists.keys() - {"lane_layout", "lane_data"}:
        return False
    lanes, data = lists.get("lane_layout"), lists.get("lane_data")
    return lanes == (1, SUBGROUP_SIZE) and (data is None or data in LANE_DATA)
