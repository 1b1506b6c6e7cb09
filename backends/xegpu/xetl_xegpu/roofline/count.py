"""What a kernel does: products, vector instructions, bytes and messages, by loop.

`work_of` counts at stage ``lanes``; no compiler of Intel's is needed.  The result is
JSON, for an artifact.  How often a loop runs may depend on sizes and on the number of
the program: `indices.Indices` keeps the arithmetic for that.

Counts of a node, for one subgroup: ``rows`` (of A, that go to the matrix unit),
``flops`` (of products), ``vector`` (instructions of 16 lanes), ``near`` (bytes through
the first cache or shared memory, whole rows of 64), ``messages``, ``waits`` (1 where
memory is read that nobody prefetched).  For all subgroups of a program together:
``far``, the bytes of different blocks by the axes of the grid that they depend on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import Block, Operation, SSAValue

from xetl.devices import ROW_BYTES, Device
from xetl.dialects.base import element_type, shape_of
from xetl.dialects.upstream import arith, scf, vector
from xetl_xegpu import simt
from xetl_xegpu.lowering.register_need import values_of_lanes
from xetl_xegpu.roofline.indices import Indices
from xetl_xegpu.roofline.model import OPERAND_BITS

Work = Mapping[str, Any]

_FREE = (
    *(arith.ConstantOp, arith.BitcastOp, arith.IndexCastOp),
    *(vector.ExtractOp, vector.InsertOp, vector.FromElementsOp, vector.BroadcastOp),
    *(vector.ShuffleOp, vector.BitcastOp),
)
"""Names for registers, or operands of the instruction that follows."""

_CYCLES = {
    # [Xe] the unit for functions is a quarter as wide; [assumed] series of FMA.
    **dict.fromkeys(("exp2", "exp", "log2", "log", "sqrt", "rsqrt", "sin", "cos"), 4),
    **dict.fromkeys(("erf", "tanh", "powf"), 20),
    **dict.fromkeys(("divf", "divsi", "divui", "remsi", "remui"), 8),
    # Four steps over 16 lanes, each a move and an operation.
    **dict.fromkeys(("reduce", "scan"), 8),
}
"""Of an instruction of 16 lanes, by the last part of the operation's name."""

_BLOCKS = (simt.BlockLoadOp, simt.BlockStoreOp, simt.BlockPrefetchOp)
_ELEMENTS = (simt.LoadOp, simt.StoreOp, simt.AtomicOp)


def work_of(kernel: simt.FuncOp, device: Device) -> Work:
    """Count what a kernel at stage ``lanes`` does on a device."""
    subgroups = prod(kernel.lanes) // device.subgroup_size
    indices = Indices(kernel.body.block, subgroups)
    counter = _Counter(device, indices, values_of_lanes(kernel))
    body = counter.node(kernel.body.block)
    loops = [body]
    while loops:  # trips are known as slots, of which only those needed are kept
        found = loops.pop()["loops"]
        for each in found:
            each[0] = indices.keep(each[0])
        loops += [node for _, node in found]
    axes = indices.all_axes()
    return {"subgroups": subgroups, "axes": axes, "slots": indices.kept, "body": body}


class _Counter:
    def __init__(
        self, device: Device, indices: Indices, of_lanes: set[SSAValue]
    ) -> None:
        self._device = device
        self._indices = indices
        self._of_lanes = of_lanes

    def node(self, block: Block) -> dict[str, Any]:
        """The counts of a block, without those of the loops in it."""
        found: dict[str, Any] = {"far": {}, "loops": []}
        seen: set[object] = set()
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                trips = self._indices.trips(op)
                found["loops"].append([trips, self.node(op.body.block)])
            elif isinstance(op, scf.WhileOp):
                body = self.node(op.before.block)
                found["loops"].append([self._indices.trips(op), body])
            elif isinstance(op, scf.IfOp):
                # What is done now and then is taken as if it always were.
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
        """Bytes of the blocks that are not another subgroup's as well."""
        places = set(self._indices.places(place)) - seen
        seen |= places
        axes = str(self._indices.axes(place))
        found["far"][axes] = found["far"].get(axes, 0) + size * len(places)

    def _compute(self, op: Operation, found: dict[str, Any]) -> None:
        if isinstance(op, simt.DpasOp):
            k = self._device.matrix.depth_bits // OPERAND_BITS[op.a_type.data]
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
    element = element_type(value.type)
    bits = element.bitwidth if isinstance(element, FixedBitwidthType) else 64
    return prod(shape_of(value.type)) * max(8, bits) // 8


def _words(value: SSAValue) -> int:
    """Instructions of 16 lanes: an element each, two where it has 64 bits."""
    element = element_type(value.type)
    is_double = isinstance(element, FixedBitwidthType) and element.bitwidth > 32
    elements = prod(shape_of(value.type))
    return elements * 2 if is_double and shape_of(value.type) else elements
