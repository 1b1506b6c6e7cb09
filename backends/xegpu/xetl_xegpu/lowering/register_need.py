"""An estimate of the registers that a kernel needs at once, from its live values.

The live values at a point of the program are counted in bytes of all lanes of a
subgroup. Numbers that are the same in every lane and constants count nothing. The
compilers of drivers move instructions, so this is an estimate; it only decides between
the two sizes of the register file.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import prod

from xdsl.dialects.builtin import AnyFloat, VectorType
from xdsl.ir import Block, Operation, SSAValue

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
    found = _Live(values_of_lanes(kernel))
    found.before(kernel.body.block, set())
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


class _Live:
    """Liveness analysis; ``most`` is the largest sum of live bytes of one lane."""

    def __init__(self, of_lanes: set[SSAValue]) -> None:
        self.most = 0
        self._of_lanes = of_lanes
        self._bytes_of = cache(bytes_of)

    def before(self, block: Block, after: set[SSAValue]) -> None:
        """Count the live values in a block, given those that are live after it."""
        live = set(after)
        size = self._size(live)
        self.most = max(self.most, size)
        for op in reversed(list(block.ops)):
            size -= self._size(live.intersection(op.results))
            live.difference_update(op.results)
            if op.regions:
                # A loop returns to its start: the values it uses live all through it.
                size += self._size(used := _used_from_outside(op) - live)
                live |= used
            for inner in (each for region in op.regions for each in region.blocks):
                self.before(inner, live)
            size += self._size(used := set(op.operands) - live)
            live |= used
            self.most = max(self.most, size)

    def _size(self, values: Iterable[SSAValue]) -> int:
        return sum(self._bytes_of(each) for each in values if each in self._of_lanes)


def _used_from_outside(op: Operation) -> set[SSAValue]:
    """Return the values from outside that the regions of an operation use."""
    inside = [each for region in op.regions for each in region.walk()]
    made = {result for each in inside for result in each.results}
    blocks = [
        b for each in (op, *inside) for region in each.regions for b in region.blocks
    ]
    made |= {argument for block in blocks for argument in block.args}
    return {operand for each in inside for operand in each.operands} - made


def bytes_of(value: SSAValue) -> int:
    """Return the bytes of a value in one lane; 0 for i1, which is in flag registers."""
    bits = bit_width(element_type(value.type))
    return 0 if bits == 1 else prod(shape_of(value.type)) * bits // 8
