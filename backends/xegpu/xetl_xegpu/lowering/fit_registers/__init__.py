"""fit-registers: order operations around products so that they fit the registers.

*What*: where more is in use at once than a thread has registers, loads and what is
computed move down to right before the first that needs them, and products change places
so that what they read is read for the last time soon. If no order fits, messages that
bring many rows are cut in two.
*Why*: what does not fit is spilled to memory; Intel's compiler moves operations, too,
but not so far. [measured] ocloc 26.27, pvc: attention of f32 with heads of 128, 11 KB
of a thread before, none now; a GEMM of f32, 64x32 a subgroup, 10.7 KB and none.
*How*: some orders are tried, first those that are most like the one there is; the first
that fits is taken, else the one that needs least. What is in use is estimated
(`graph.Registers`); a few registers are left for what the estimate does not see.
A kernel that needs too many all the same is marked (`simt.SPILLS`).
*Left alone*: blocks that fit, for there a load had better be early; those of which no
order comes near to fitting; blocks without products (`order-by-use`); the order of
whatever writes memory or waits, and of loads beside it.

Before: ``%a0 = load; %a1 = load; %b0 = load; %b1 = load; dpas %a0, %b0; dpas %a1, %b1``
After:  ``%a0 = load; %b0 = load; dpas %a0, %b0; %a1 = load; %b1 = load; dpas %a1, %b1``
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp, UnitAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.devices import Device, find_device
from xetl.dialects.base import operations_in
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder, Pass, move_to_end
from xetl_xegpu import simt
from xetl_xegpu.lowering.fit_registers.graph import Graph, Registers, behind_needs
from xetl_xegpu.lowering.register_need import registers_needed
from xetl_xegpu.simt.block_ops import PIECE


class Line:
    """A line that grows at its end.

    Attributes:
        numbers: of the operations in it.
        live: bytes of a lane that are in use at its end.
        most: and at most, so far.
    """

    def __init__(self, graph: Graph, registers: Registers) -> None:
        self.numbers: list[int] = []
        self._graph, self._held = graph, registers
        self._placed = [False] * len(graph.ops)
        self._bits = 0
        self._readers = Counter(root for reads in graph.reads for root in reads)
        # What comes from further out lives all through the block: it may be a loop.
        given = [r for r in self._readers if r not in graph.own]
        given += [each for each in graph.block.args if each in self._readers]
        self.live = self.most = sum(map(registers.bytes_of, given))

    @property
    def operations(self) -> list[Operation]:
        """What stands in it."""
        return [self._graph.ops[number] for number in self.numbers]

    def place(self, number: int) -> None:
        """Append an operation and all that it needs and is not there yet."""
        for each in self._missing(number):
            self._placed[each] = True
            self._bits |= 1 << each
            self.numbers.append(each)
            self.live, at_once = self._step(each, self.live, self._readers)
            self.most = max(self.most, at_once)

    def tried(self, number: int) -> tuple[int, int]:
        """What would be in use at most, and at the end, if this were placed."""
        missing = self._missing(number)
        touched = {root for each in missing for root in self._graph.reads[each]}
        readers = Counter({root: self._readers[root] for root in touched})
        live, most = self.live, 0
        for each in missing:
            live, at_once = self._step(each, live, readers)
            most = max(most, at_once)
        return most, live

    def is_ready(self, anchor: int) -> bool:
        """Whether no other anchor must stand before it."""
        before = self._graph.anchors_before[anchor]
        return not before & ~self._bits

    def _step(
        self, number: int, live: int, readers: Counter[SSAValue]
    ) -> tuple[int, int]:
        """What is in use behind an operation, and at once while it runs."""
        graph, size = self._graph, self._held.bytes_of
        made = sum(size(r) for r in graph.makes[number] if self._begins(r, number))
        dying = 0
        for root in graph.reads[number]:
            readers[root] -= 1
            if not readers[root] and root in graph.own:
                dying += size(root)
        # A result may take the place of what is read for the last time.
        return live + made - dying, live + max(0, made - dying)

    def _begins(self, root: SSAValue, number: int) -> bool:
        return root.owner is self._graph.ops[number] and root in self._readers

    def _missing(self, number: int) -> list[int]:
        """What is needed and not there yet, each behind what it needs itself."""
        if self._placed[number]:
            return []
        return behind_needs(number, self._graph.needs, self._placed.__getitem__)


def line_of(graph: Graph, registers: Registers, numbers: Iterable[int]) -> Line:
    """Operations in this order, each behind what it needs."""
    line = Line(graph, registers)
    for number in numbers:
        line.place(number)
    return line


_WINDOW = 64
"""Anchors that are looked at to find the next one."""

_A, _B = 0, 1


def lines(graph: Graph, registers: Registers, budget: int) -> Iterator[Line]:
    """Some lines, those first that differ least from the one there is.

    Args:
        budget: bytes of a lane.
    """
    yield line_of(graph, registers, range(len(graph.ops)))
    yield line_of(graph, registers, graph.anchors)
    for side in (_B, _A):
        yield line_of(graph, registers, _by_loads(graph, side))
    yield _within(graph, registers, budget)


def _by_loads(graph: Graph, side: int) -> list[int]:
    """Products that read from one load next to each other, nest by nest.

    A nest are products of which none multiplies what another one gave.
    """
    ordered: list[int] = []
    nest: list[int] = []
    for number in graph.anchors:
        is_product = isinstance(graph.ops[number], simt.PRODUCTS)
        if not is_product or _multiplies_any(graph, number, nest):
            ordered += _grouped(graph, nest, side)
            nest = []
        if is_product:
            nest.append(number)
        else:
            ordered.append(number)
    return ordered + _grouped(graph, nest, side)


def _multiplies_any(graph: Graph, product: int, others: list[int]) -> bool:
    behind = (graph.behind(side) for side in graph.ops[product].operands[:-1])
    return not set(others).isdisjoint(each for side in behind for each in side)


def _grouped(graph: Graph, nest: list[int], side: int) -> list[int]:
    first: dict[int, int] = {}
    keys = {
        number: first.setdefault(_load_behind(graph, number, side), len(first))
        for number in nest
    }
    return sorted(nest, key=keys.__getitem__)


def _load_behind(graph: Graph, product: int, side: int) -> int:
    """The first load that a side of a product comes from; -1: none of this block."""
    behind = graph.behind(graph.ops[product].operands[side])
    loads = (simt.BlockLoadOp, simt.LoadOp)
    return min((n for n in behind if isinstance(graph.ops[n], loads)), default=-1)


def _within(graph: Graph, registers: Registers, budget: int) -> Line:
    """The order there is, as long as the registers last; else what frees most."""
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
"""Registers that must be left as it stands; [measured] with as many, nothing spills."""

_OF_PAYLOADS = 12
"""Registers more beside reductions, where messages keep payloads (`emit.payloads`): of
eight prefetches and four loads.  [measured] attention of f16, 16 rows by 32 keys,
D = 64, pvc: as it stands 832 bytes are spilled by them, in another order none.
"""

_SPARE = 64
"""Registers to leave where an order is chosen: for addresses, descriptions of messages,
and gaps.  [measured] with 48 some GEMMs of f32 still spill a KB."""

_UNCUT = {_ENOUGH[simt.DpasOp]: 0}
"""Registers that must be left so that no message is cut, by `_ENOUGH`. [measured]
attention, 16 rows by 64 keys, D = 64: the best order leaves 12, and nothing spills; a
step takes 737 instructions with messages cut, 694 without."""

_BEYOND = 32
"""Registers more than there are with which no order helps.  [measured] products of f64
that need 320 or more spill more bytes in another order; with 268 all still fit."""

_SMALLER = (64, 32)
"""Bytes that a load brings a lane at most where it is cut: 16 registers, then 8."""


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
    """Bring a block into the order that needs least, if it needs too much."""
    enough = max((_ENOUGH.get(type(op), 0) for op in block.ops), default=0)
    if not enough:
        return  # no product
    spare, cut = _SPARE, _UNCUT.get(enough, _SPARE)
    if any(isinstance(op, simt.ReduceOp) for op in block.ops):
        enough += _OF_PAYLOADS
    by_lanes = any(isinstance(op, simt.BlockLoadOp) and op.by_lanes for op in block.ops)
    if by_lanes:
        if device.emulated:
            return  # a function moves such a block, in registers of its own
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
    """What a lane has for values, in bytes, if some registers are left."""
    registers = max(device.registers) - spare
    return registers * device.register_bytes // device.subgroup_size


def _best(graph: Graph, registers: Registers, budget: int) -> Line:
    """The first line that fits, else the one that needs least."""
    found: list[Line] = []
    for line in lines(graph, registers, budget):
        found.append(line)
        if line.most <= budget:
            break
    # Of equals the last: it deviates from the order there was latest.
    return min(reversed(found), key=lambda line: line.most)


_LEAST_ROWS = 8


def halve_loads(block: Block, most: int) -> bool:
    """Cut the loads of a block that bring a lane more than ``most`` bytes.

    Returns:
        Whether there were such loads.
    """
    large = [
        op
        for op in block.ops
        if isinstance(op, simt.BlockLoadOp) and _is_large(op.shape, most)
    ]
    for op in large:
        _halve(op)
    return bool(large)


def _is_large(shape: simt.BlockShape, most: int) -> bool:
    """Whether it is to be cut, and each half of a block has whole pieces."""
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
