"""An estimate of the registers that a kernel needs at once, from its live values.

The live values at a point of the program are counted in bytes of all lanes of a
subgroup. Numbers that are the same in every lane and constants count nothing. The
compilers of drivers move instructions, so this is an estimate; it only decides between
the two sizes of the register file.
"""

from __future__ import annotations

from functools import cache
from math import prod

from xdsl.dialects.builtin import AnyFloat, VectorType
from xdsl.ir import SSAValue

from xetl.analysis.liveness import Liveness
from xetl.devices import Device
from xetl.dialects.base import element_type, shape_of
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.transforms.diagnostics import remark
from xetl_xegpu import simt

_OF_A_LANE = (simt.LaneIdOp, simt.BlockLoadOp, simt.DpasOp, simt.LoadOp, simt.AtomicOp)
"""Operations whose results differ from lane to lane, whatever their operands are."""


_FOR_MESSAGES = 16
"""Registers for addresses and descriptors of messages, besides those for data."""


def register_file(kernel: simt.FuncOp, device: Device) -> int:
    """Return how many registers a thread gets: the small file, or the large one.

    The large file halves the number of threads, so it is chosen only if the small one
    would spill. [measured] ocloc 26.27 on pvc, 90 kernels, with the small file: up to
    100 registers in use, no kernel that moves blocks spills; from 128 on, four of five
    do.
    """
    small, large = device.registers
    need = registers_needed(kernel, device) + _FOR_MESSAGES
    subgroups = prod(kernel.lanes) // device.subgroup_size
    chosen = small if need <= small or subgroups > device.most_subgroups else large
    if chosen == large or need > small:
        text = f"about {need} are in use at once: each thread gets {chosen}"
        more = "; what does not fit goes to memory, smaller tiles would help"
        remark(kernel, "registers", text + (more if need > chosen else ""))
    return chosen


def registers_needed(kernel: simt.FuncOp, device: Device) -> int:
    """Estimate the most registers of a thread that are in use at one time."""
    of_lanes, size = values_of_lanes(kernel), cache(bytes_of)
    found = Liveness(
        kernel.body.block, lambda value: size(value) if value in of_lanes else 0
    )
    return -(-found.most * device.subgroup_size // device.register_bytes)


def values_of_lanes(kernel: simt.FuncOp) -> set[SSAValue]:
    """Return the values that differ from lane to lane."""
    found: set[SSAValue] = set()
    for op in kernel.walk():
        if isinstance(op, arith.ConstantOp):
            continue
        varies = isinstance(op, _OF_A_LANE) or not found.isdisjoint(op.operands)
        results = [
            *op.results,
            *(a for r in op.regions for b in r.blocks for a in b.args),
        ]
        if varies:
            found.update(results)
        elif not isinstance(op, vector.BroadcastOp):
            # What loops yield is not examined: assume that vectors and floats vary.
            kinds = VectorType | AnyFloat
            found.update(each for each in results if isinstance(each.type, kinds))
    return found


def bytes_of(value: SSAValue) -> int:
    """Return the bytes of a value in one lane; 0 for i1, which is in flag registers."""
    bits = bit_width(element_type(value.type))
    return 0 if bits == 1 else prod(shape_of(value.type)) * bits // 8
