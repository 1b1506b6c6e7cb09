"""The work of a kernel by loop: products, vector instructions, bytes and messages.

`work_of` counts at stage ``lanes``; it needs no compiler of Intel's. The result is JSON
for an artifact. The trip count of a loop may depend on sizes and on the program's
index: `Indices` keeps the arithmetic for that.

The counts of a node are for one subgroup: ``rows`` (of A, for the matrix unit),
``flops`` (of products), ``vector`` (instructions of 16 lanes), ``near`` (bytes through
the first cache or shared memory, in whole rows of 64), ``messages``, ``waits`` (1 if
memory is read that was not prefetched). ``far`` is for all subgroups of a program
together: the bytes of different blocks, by the axes of the grid that they depend on.

In a loop the counter has its value halfway, and other carried values have their initial
ones. This is exact if trip counts grow evenly, and blocks move in step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from xetl.devices import ROW_BYTES, Device
from xetl.dialects.base import element_type, shape_of
from xetl.dialects.upstream import arith, scf, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.worklist import Worklist
from xetl_xegpu import simt
from xetl_xegpu.lowering.fit_registers.graph import values_of_lanes
from xetl_xegpu.roofline.model import LEAVES, OPERATIONS, evaluate

_ALL_AXES = 7
_SAME = ("index_cast", "extsi", "extui", "trunci")
"""Operations that do not change a number."""


def _end_of_rotated(block: Block) -> Sequence[SSAValue]:
    """Return end and step of a loop that `rotate-loops` made; () for other loops."""
    last = block.last_op
    asked = last.operands[0].owner if isinstance(last, scf.ConditionOp) else None
    if not isinstance(asked, arith.CmpiOp):
        return ()
    following = asked.lhs.owner
    if not isinstance(following, arith.AddiOp) or following.lhs is not block.args[0]:
        return ()
    return asked.rhs, following.rhs


class Indices:
    """The slots of a kernel: its integer arithmetic, to be evaluated later.

    Attributes:
        kept: the slots that `keep` was called for, and their operands.
    """

    def __init__(self, block: Block, subgroups: int) -> None:
        self._slots: list[list[Any]] = []
        self._of: dict[SSAValue, int] = {}
        self._trips: dict[Operation, int] = {}
        self._new: dict[int, int] = {}
        self.kept: list[list[Any]] = []
        for index, argument in enumerate(block.args):
            self._give(argument, "word", index)
        for op in block.walk():
            self._read(op)
        # Find the axes of the grid that each slot depends on.
        self._axes: list[int] = []
        for index, slot in enumerate(self._slots):
            axes: int = 1 << slot[1] if slot[0] == "program" else 0
            for operand in self._operands(index):
                axes |= self._axes[operand]
            self._axes.append(axes)
        self._at = [
            evaluate(self._slots, (), (0, 0, 0), (64, 64, 64), each)
            for each in range(subgroups)
        ]

    def trips(self, loop: Operation) -> int | None:
        """Return the slot of a loop's trip count, or None if it is unknown."""
        return self._trips.get(loop)

    def keep(self, slot: int | None) -> int | None:
        """Keep a slot and its operands; return its index among those kept."""
        if slot is None:
            return None
        wanted = Worklist([slot] if slot not in self._new else [])
        for each in wanted:
            wanted += [i for i in self._operands(each) if i not in self._new]
        for each in sorted(wanted.seen):
            kind: str = self._slots[each][0]
            rest: list[Any] = self._slots[each][1:]
            new = rest if kind in LEAVES else [self._new[i] for i in rest]
            self._new[each] = len(self.kept)
            self.kept.append([kind, *new])
        return self._new[slot]

    def places(self, values: Sequence[SSAValue]) -> Iterator[object]:
        """Yield a key of the block of each subgroup; unknown blocks all differ."""
        slots = [self._of.get(value) for value in values]
        for number, found in enumerate(self._at):
            place = [None if slot is None else found[slot] for slot in slots]
            yield (slots[0], *(place if None not in place else [number, "?"]))

    def axes(self, values: Sequence[SSAValue]) -> int:
        """Return the axes of the grid that values depend on, as bits; unknown: all."""
        slots = (self._of.get(value) for value in values)
        found = 0
        for slot in slots:
            found |= _ALL_AXES if slot is None else self._axes[slot]
        return found

    def all_axes(self) -> int:
        """Return the axes of the grid that the kernel uses, as bits."""
        return sum(1 << n for n in range(3) if any(a >> n & 1 for a in self._axes))

    def _read(self, op: Operation) -> None:
        name = op.name.rpartition(".")[2]
        if isinstance(op, arith.ConstantOp):
            value = op.value
            if isinstance(value, IntegerAttr):
                self._give(op.result, "number", value.value.data)
        elif isinstance(op, simt.GroupIdOp | simt.NumGroupsOp):
            kind = "program" if type(op) is simt.GroupIdOp else "grid"
            self._give(op.result, kind, op.axis)
        elif isinstance(op, simt.SubgroupIdOp | simt.LaneIdOp):
            # Lanes of a subgroup access neighbours: the first lane represents all.
            kind = "subgroup" if type(op) is simt.SubgroupIdOp else "number"
            self._give(op.result, kind, 0)
        elif isinstance(op, scf.ForOp):
            inits, end = [op.lower_bound, *op.init_args], (op.upper_bound, op.step)
            self._loop(op, op.body.block, inits, end, op.results)
        elif isinstance(op, scf.WhileOp):
            block = op.before.block
            end = _end_of_rotated(block)
            self._loop(op, block, op.inits, end, op.results[1:])
        elif name in _SAME:
            self._same(op.results[0], op.operands[0])
        elif name in OPERATIONS and len(op.results) == 1:
            operands = [self._of[each] for each in op.operands if each in self._of]
            if len(operands) == len(op.operands):
                self._give(op.results[0], name, *operands)

    def _loop(
        self,
        op: Operation,
        block: Block,
        inits: Sequence[SSAValue],
        end: Sequence[SSAValue],
        results: Sequence[SSAValue],
    ) -> None:
        """Make slots for a loop whose first argument may be a counter."""
        bounds = [self._of[each] for each in (*inits[:1], *end) if each in self._of]
        for inside, first in zip(block.args, inits):
            self._same(inside, first)
        for after, first in zip(results, inits[1:]):
            self._same(after, first)
        if len(bounds) == 3:
            self._give(block.args[0], "halfway", *bounds)
            self._trips[op] = self._new_slot("trips", *bounds)

    def _same(self, value: SSAValue, other: SSAValue) -> None:
        slot = self._of.get(other)
        if slot is not None:
            self._of[value] = slot

    def _give(self, value: SSAValue, kind: str, *rest: int) -> None:
        self._of[value] = self._new_slot(kind, *rest)

    def _new_slot(self, kind: str, *rest: int) -> int:
        self._slots.append([kind, *rest])
        return len(self._slots) - 1

    def _operands(self, slot: int) -> list[int]:
        kind: str = self._slots[slot][0]
        rest: list[Any] = self._slots[slot][1:]
        return [] if kind in LEAVES else rest


Work = Mapping[str, Any]

_FREE = (
    *(arith.ConstantOp, arith.BitcastOp, arith.IndexCastOp),
    *(vector.ExtractOp, vector.InsertOp, vector.FromElementsOp, vector.BroadcastOp),
    *(vector.ShuffleOp, vector.BitcastOp),
)
"""Operations that take no instruction: they rename registers, or are operands of the
next instruction."""

_CYCLES = {
    # [Xe] the unit for functions is a quarter as wide; [assumed] series of FMA.
    **dict.fromkeys(("exp2", "exp", "log2", "log", "sqrt", "rsqrt", "sin", "cos"), 4),
    **dict.fromkeys(("erf", "tanh", "powf"), 20),
    **dict.fromkeys(("divf", "divsi", "divui", "remsi", "remui"), 8),
    # Four steps over 16 lanes, each a move and an operation.
    **dict.fromkeys(("reduce", "scan"), 8),
    "reduce_rows": 24,  # [measured] as assembly, see `emit/assembly.py`
}
"""Cycles of an instruction of 16 lanes, by the last part of the operation's name."""

_BLOCKS = (simt.BlockLoadOp, simt.BlockStoreOp, simt.BlockPrefetchOp)
_ELEMENTS = (simt.LoadOp, simt.StoreOp, simt.AtomicOp)


def work_of(kernel: simt.FuncOp, device: Device) -> Work:
    """Count the work of a kernel at stage ``lanes`` on a device."""
    subgroups = prod(kernel.lanes) // device.subgroup_size
    indices = Indices(kernel.body.block, subgroups)
    counter = _Counter(device, indices, values_of_lanes(kernel))
    body = counter.node(kernel.body.block)
    loops = [body]
    while loops:  # keep only the slots that trip counts need
        found = loops.pop()["loops"]
        for each in found:
            each[0] = indices.keep(each[0])
        loops += [node for _, node in found]
    axes = indices.all_axes()
    return {"subgroups": subgroups, "axes": axes, "slots": indices.kept, "body": body}


@dataclass(frozen=True)
class _Counter:
    _device: Device
    _indices: Indices
    _of_lanes: set[SSAValue]

    def node(self, block: Block) -> dict[str, Any]:
        """Return the counts of a block, without those of the loops in it."""
        found: dict[str, Any] = {"far": {}, "loops": []}
        seen: set[object] = set()
        for op in block.ops:
            if isinstance(op, scf.ForOp | scf.WhileOp):
                body = self.node(op.regions[0].block)
                found["loops"].append([self._indices.trips(op), body])
            elif isinstance(op, scf.IfOp):
                # Count the larger side of a branch as if it always ran.
                nodes = [self.node(r.block) for r in op.regions if r.blocks]
                found["loops"].append([None, max(nodes, key=_weight)])
            elif isinstance(op, _BLOCKS):
                self._block(op, found, seen)
            elif isinstance(op, _ELEMENTS):
                self._elements(op, found)
            else:
                self._compute(op, found)
        reads, asks = found.pop("reads", 0), found.pop("asks", 0)
        if reads and not asks:
            found["waits"] = 1
        return found

    def _block(
        self,
        op: simt.BlockLoadOp | simt.BlockStoreOp | simt.BlockPrefetchOp,
        found: dict[str, Any],
        seen: set[object],
    ) -> None:
        shape, size = op.shape, op.shape.bits // 8
        row = -(-shape.columns * size * shape.count // ROW_BYTES) * ROW_BYTES
        _add(found, "near", shape.rows * row)
        by_lanes = shape.items if op.by_lanes is not None else 1
        _add(found, "messages", by_lanes)
        if isinstance(op, simt.BlockPrefetchOp):
            found["asks"] = 1
            return
        if isinstance(op, simt.BlockLoadOp):
            found["reads"] = 1
        size *= shape.rows * shape.columns * shape.count
        self._far(found, (op.base, op.x, op.y), size, seen)

    def _elements(
        self, op: simt.LoadOp | simt.StoreOp | simt.AtomicOp, found: dict[str, Any]
    ) -> None:
        value = op.fill if isinstance(op, simt.LoadOp) else op.value
        lanes = self._device.subgroup_size if op.address in self._of_lanes else 1
        size = _bytes(value) * lanes
        _add(found, "near", max(size, ROW_BYTES))
        _add(found, "messages", 1)
        if op.space.data == "global":
            if not isinstance(op, simt.StoreOp):
                found["reads"] = 1
            self._far(found, (op.address,), size, set())

    def _far(
        self,
        found: dict[str, Any],
        place: Sequence[SSAValue],
        size: int,
        seen: set[object],
    ) -> None:
        """Add the bytes of blocks that no subgroup has accessed yet."""
        places = set(self._indices.places(place)) - seen
        seen |= places
        axes = str(self._indices.axes(place))
        found["far"][axes] = found["far"].get(axes, 0) + size * len(places)

    def _compute(self, op: Operation, found: dict[str, Any]) -> None:
        if isinstance(op, simt.DpasOp):
            k = self._device.matrix.depth_bits // simt.OPERAND_BITS[op.a_type.data]
            _add(found, "rows", op.m)
            _add(found, "flops", 2 * op.m * self._device.matrix.columns * k)
        elif isinstance(op, simt.LaneProductOp):
            lanes = self._device.subgroup_size
            _add(found, "vector", op.m * lanes * _bytes(op.c) // (4 * op.m))
            _add(found, "flops", 2 * op.m * lanes * lanes)
        elif op.results and not isinstance(op, _FREE):
            cycles = _CYCLES.get(op.name.rpartition(".")[2], 1)
            _add(found, "vector", cycles * max(1, *map(_words, op.results)))


def _add(found: dict[str, Any], name: str, number: int) -> None:
    found[name] = found.get(name, 0) + number


def _weight(node: Mapping[str, Any]) -> int:
    inner = sum(_weight(each) for _, each in node["loops"])
    return inner + node.get("near", 0) + node.get("vector", 0) + node.get("rows", 0)


def _bytes(value: SSAValue) -> int:
    bits = bit_width(element_type(value.type))
    return prod(shape_of(value.type)) * max(8, bits) // 8


def _words(value: SSAValue) -> int:
    """Return the instructions of 16 lanes: one for each element, two for 64 bits."""
    is_double = bit_width(element_type(value.type)) > 32
    elements = prod(shape_of(value.type))
    return elements * 2 if is_double and shape_of(value.type) else elements
