"""fit-registers: order operations around products so that they fit the registers.

*What*: if the live values of a block need more registers than a thread has, loads and
computations move down to right before their first use, and products are reordered so
that the live ranges of their operands end early. If no order fits, loads of many rows
are split in two.
*Why*: values that do not fit are spilled to memory. Intel's compiler moves operations,
too, but not so far. [measured] ocloc 26.27, pvc, spilled bytes of a thread: attention
of f32 with heads of 128, 11 KB before, none now; a GEMM of f32, 64x32 a subgroup,
10.7 KB and none.
*How*: several orders are tried, those nearest to the present order first. The first
order that fits is taken, or else the one that needs the fewest registers. The need is
an estimate (`graph.Registers`); some registers are left for what it does not count.
A kernel that still needs too many is marked (`simt.SPILLS`).
*Left alone*: blocks that fit, because loads should be early there; blocks in which no
order comes near to fitting; blocks without products (`order-by-use`). Operations that
write memory or wait keep their order, also with respect to loads.

Before: ``%a0 = load; %a1 = load; %b0 = load; %b1 = load; dpas %a0, %b0; dpas %a1, %b1``
After:  ``%a0 = load; %b0 = load; dpas %a0, %b0; %a1 = load; %b1 = load; dpas %a1, %b1``
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from xdsl.dialects.builtin import ModuleOp, UnitAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.devices import Device, find_device
from xetl.dialects.base import operations_in
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder, Pass, move_to_end
from xetl_xegpu import simt
from xetl_xegpu.lowering.fit_registers.graph import (
    Graph,
    Registers,
    behind_needs,
    registers_needed,
)
from xetl_xegpu.simt.block_ops import PIECE


class Line:
    """An order of operations in the making, with its need of registers.

    Attributes:
        numbers: the numbers of the operations so far.
        live: bytes of a lane that are live at the end.
        most: the most bytes that were live at one time.
    """

    def __init__(self, graph: Graph, registers: Registers) -> None:
        self.numbers: list[int] = []
        self._graph, size = graph, registers.bytes_of
        self._placed = [False] * len(graph.ops)
        self._bits = 0
        self._readers = Counter(root for reads in graph.reads for root in reads)
        self._sizes = {r: size(r) if r in graph.own else 0 for r in self._readers}
        made = ({r for r in m if r in self._readers} for m in graph.makes)
        pairs = zip(graph.ops, made)
        self._made = [sum(size(r) for r in m if r.owner is op) for op, m in pairs]
        self._behind: dict[int, list[int]] = {}
        # Values from outside are live in the whole block, which may be a loop body.
        given = [r for r in self._readers if r not in graph.own]
        given += [each for each in graph.block.args if each in self._readers]
        self.live = self.most = sum(map(size, given))

    @property
    def operations(self) -> list[Operation]:
        """The operations so far."""
        return [self._graph.ops[number] for number in self.numbers]

    def place(self, number: int) -> None:
        """Append an operation, after its needs that are not placed yet."""
        for each in self._missing(number):
            self._placed[each] = True
            self._bits |= 1 << each
            self.numbers.append(each)
            self.live, at_once = self._step(each, self.live, self._readers)
            self.most = max(self.most, at_once)

    def tried(self, number: int) -> tuple[int, int]:
        """Return the most live bytes, and those at the end, if this were placed."""
        missing = self._missing(number)
        reads = (root for each in missing for root in self._graph.reads[each])
        readers = {root: self._readers[root] for root in reads}
        live, most = self.live, 0
        for each in missing:
            live, at_once = self._step(each, live, readers)
            most = max(most, at_once)
        return most, live

    def is_ready(self, anchor: int) -> bool:
        """Whether all anchors that must precede this one are placed."""
        before = self._graph.anchors_before[anchor]
        return not before & ~self._bits

    def _step(
        self, number: int, live: int, readers: dict[SSAValue, int]
    ) -> tuple[int, int]:
        """Return the live bytes after an operation, and the most while it runs."""
        made, dying = self._made[number], 0
        for root in self._graph.reads[number]:
            readers[root] -= 1
            if not readers[root]:
                dying += self._sizes[root]
        # A result may take the registers of operands that are read for the last time.
        return live + made - dying, live + max(0, made - dying)

    def _missing(self, number: int) -> list[int]:
        """Return an operation and its unplaced needs, in a topological order."""
        placed, behind = self._placed, self._behind.get(number)
        if behind is None:
            behind = behind_needs(number, self._graph.needs, placed.__getitem__)
        # All that a placed operation needs is placed, so the others keep their order.
        found = self._behind[number] = [each for each in behind if not placed[each]]
        return found


def line_of(graph: Graph, registers: Registers, numbers: Iterable[int]) -> Line:
    """Return the line of operations in this order, each after its needs."""
    line = Line(graph, registers)
    for number in numbers:
        line.place(number)
    return line


_WINDOW = 64
"""The most anchors that are examined to find the next one."""

_A, _B = 0, 1
_LOADS = (simt.BlockLoadOp, simt.LoadOp)


def lines(graph: Graph, registers: Registers, budget: int) -> Iterator[Line]:
    """Yield some lines, nearest to the present order first; ``budget`` is in bytes."""
    yield line_of(graph, registers, range(len(graph.ops)))
    yield line_of(graph, registers, graph.anchors)
    for side in (_B, _A):
        yield line_of(graph, registers, _by_loads(graph, side))
    yield _within(graph, registers, budget)


def _by_loads(graph: Graph, side: int) -> list[int]:
    """Order anchors so that products with operands of one load are adjacent.

    This is done nest by nest. No product of a nest multiplies the result of another
    product of the nest.
    """
    ordered: list[int] = []
    nest: list[int] = []
    for number in graph.anchors:
        is_product = isinstance(graph.ops[number], simt.PRODUCTS)
        sides = map(graph.behind, graph.ops[number].operands[:-1])
        if not is_product or not set(nest).isdisjoint(chain(*sides)):
            ordered += _grouped(graph, nest, side)
            nest = []
        if is_product:
            nest.append(number)
        else:
            ordered.append(number)
    return ordered + _grouped(graph, nest, side)


def _grouped(graph: Graph, nest: list[int], side: int) -> list[int]:
    first, keys = dict[int, int](), dict[int, int]()
    for number in nest:
        behind = graph.behind(graph.ops[number].operands[side])
        # The first load that the operand depends on; -1: none in this block.
        load = min((n for n in behind if isinstance(graph.ops[n], _LOADS)), default=-1)
        keys[number] = first.setdefault(load, len(first))
    return sorted(nest, key=keys.__getitem__)


def _within(graph: Graph, registers: Registers, budget: int) -> Line:
    """Keep the present order while it fits; else place the anchor that needs least."""
    line, left = Line(graph, registers), list(graph.anchors)
    while left:
        best, least = left[0], None
        ready = (each for each in left[:_WINDOW] if line.is_ready(each))
        for anchor in ready:
            most, live = line.tried(anchor)
            if most <= budget:
                best = anchor
                break
            cost = (most, live)
            if least is None or cost < least:
                best, least = anchor, cost
        line.place(best)
        left.remove(best)
    return line


_ENOUGH: dict[type[Operation], int] = {simt.DpasOp: 24, simt.LaneProductOp: 40}
"""Registers that the present order must leave. [measured] Then nothing spills."""

_OF_PAYLOADS = 12
"""More registers for blocks with reductions, in which messages keep payloads
(`emit.payloads`) of eight prefetches and four loads. [measured] attention of f16, 16
rows by 32 keys, D = 64, pvc: they spill 832 bytes in the present order, none in
another.
"""

_SPARE = 64
"""Registers that a new order must leave, for addresses, descriptors of messages and
gaps. [measured] with 48 some GEMMs of f32 still spill a KB."""

_UNCUT = {_ENOUGH[simt.DpasOp]: 0}
"""Registers that an order must leave so that no load is split, by `_ENOUGH`. [measured]
attention, 16 rows by 64 keys, D = 64: the best order leaves 12, and nothing spills; a
step takes 737 instructions with split loads, 694 without."""

_BEYOND = 32
"""If the need exceeds the register file by more than this, no order helps. [measured]
products of f64 that need 320 or more spill more bytes in another order; with 268 all
still fit."""

_SMALLER = (64, 32)
"""The most bytes of a lane that a split load has: 16 registers, then 8."""


@dataclass(frozen=True)
class FitRegistersPass(Pass):
    device: str = "pvc"

    def rewrite(self, op: ModuleOp) -> None:
        device = find_device(self.device)
        for kernel in operations_in(op, simt.FuncOp):
            regions = [region for inner in kernel.walk() for region in inner.regions]
            for block in [block for region in regions for block in region.blocks]:
                _fit(kernel, block, device)
            if registers_needed(kernel, device) > max(device.registers) + _BEYOND:
                kernel.attributes[simt.SPILLS] = UnitAttr()


def _fit(kernel: simt.FuncOp, block: Block, device: Device) -> None:
    """Reorder a block if it needs too many registers."""
    enough = max((_ENOUGH.get(type(op), 0) for op in block.ops), default=0)
    if not enough:
        return  # no product
    spare, cut = _SPARE, _UNCUT.get(enough, _SPARE)
    if any(isinstance(op, simt.ReductionOp) for op in block.ops):
        enough += _OF_PAYLOADS
    by_lanes = any(isinstance(op, simt.BlockLoadOp) and op.by_lanes for op in block.ops)
    if by_lanes:
        if device.emulated:
            return  # a function with registers of its own moves such a block
        enough = cut = spare
    registers = Registers(kernel)
    graph = Graph(block, registers)
    if line_of(graph, registers, range(len(graph.ops))).most <= _bytes(device, enough):
        return
    budget = _bytes(device, spare)
    line = _best(graph, registers, budget)
    for most in _SMALLER:
        if line.most <= _bytes(device, cut) or not halve_loads(block, most):
            break
        registers = Registers(kernel)
        line = _best(Graph(block, registers), registers, budget)
    if line.most > _bytes(device, -_BEYOND):
        kernel.attributes[simt.SPILLS] = UnitAttr()
        return
    move_to_end(line.operations, block)


def _bytes(device: Device, spare: int) -> int:
    """Return the bytes of a lane for values if ``spare`` registers are left free."""
    registers = max(device.registers) - spare
    return registers * device.register_bytes // device.subgroup_size


def _best(graph: Graph, registers: Registers, budget: int) -> Line:
    """Return the first line that fits, or else the one that needs least."""
    found: list[Line] = []
    for line in lines(graph, registers, budget):
        found.append(line)
        if line.most <= budget:
            break
    # Of equal lines take the last: it follows the present order longest.
    return min(reversed(found), key=lambda line: line.most)


_LEAST_ROWS = 8


def halve_loads(block: Block, most: int) -> bool:
    """Split loads of more than ``most`` bytes of a lane. Return whether there are."""
    large = [
        op
        for op in block.ops
        if isinstance(op, simt.BlockLoadOp) and _is_large(op.shape, most)
    ]
    for op in large:
        _halve(op)
    return bool(large)


def _is_large(shape: simt.BlockShape, most: int) -> bool:
    """Whether a load is to be split, and each half of a block has whole pieces."""
    if shape.items * shape.item_bits // 8 <= most or shape.mode == "transpose":
        return False
    half = shape.items // shape.count // 2
    return shape.rows >= 2 * _LEAST_ROWS and half % PIECE == 0


def _halve(op: simt.BlockLoadOp) -> None:
    b, shape = Builder.before(op), replace(op.shape, rows=op.shape.rows // 2)
    y = b.insert(arith.AddiOp(op.y, b.constant(shape.rows, i64)))
    how: dict[str, Any] = {"by_lanes": op.by_lanes is not None, "hints": op.hints}
    halves = [
        b.add(simt.BlockLoadOp(*surface, shape.pieces(), shape=shape, **how))
        for surface in (op.surface, op.surface._replace(y=y))
    ]
    each = len(halves[0].results) // shape.count
    blocks = range(0, each * shape.count, each)
    pieces = [
        piece
        for start in blocks
        for half in halves
        for piece in half.results[start : start + each]
    ]
    Rewriter.replace_op(op, [], pieces)
