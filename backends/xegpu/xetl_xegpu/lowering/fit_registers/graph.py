"""The registers of values, how many a kernel needs at once; dependences in a block.

The need is an estimate: the live values at a point of the program are counted in bytes
of all lanes of a subgroup. Numbers that are the same in every lane and constants count
nothing. The compilers of drivers move instructions; the estimate only decides between
the two sizes of the register file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import prod

from xdsl.dialects.builtin import AnyFloat, VectorType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, MemoryEffectKind, get_effects

from xetl.analysis.axes import defined_by
from xetl.analysis.liveness import Liveness
from xetl.analysis.memory import is_pure
from xetl.devices import Device
from xetl.dialects.base import element_type, shape_of
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.transforms.diagnostics import remark
from xetl.worklist import Worklist
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
        results = defined_by(op)
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


def behind_needs(
    end: int, needs: Sequence[Sequence[int]], is_placed: Callable[[int], bool]
) -> list[int]:
    """Return an operation and its unplaced needs, in a topological order."""
    found: list[int] = []
    seen, open_ = {end}, [(end, iter(needs[end]))]
    while open_:
        current, left = open_[-1]
        following = next((n for n in left if n not in seen and not is_placed(n)), None)
        if following is not None:
            seen.add(following)
            open_.append((following, iter(needs[following])))
            continue
        open_.pop()
        found.append(current)
    return found


class Registers:
    """The registers of a kernel's values; sizes are bytes of a lane."""

    def __init__(self, kernel: simt.FuncOp) -> None:
        self._of_lanes = values_of_lanes(kernel)
        self.root_of = cache(self._root_of)
        self.bytes_of = cache(self._bytes_of)

    def _bytes_of(self, root: SSAValue) -> int:
        """Return the bytes of a value and of all that share its registers."""
        load = root.owner
        together = load.results if isinstance(load, simt.BlockLoadOp) else [root]
        return sum(bytes_of(each) for each in together if each in self._of_lanes)

    def _root_of(self, value: SSAValue) -> SSAValue:
        """Return the value whose registers this one shares; itself if none."""
        if isinstance(value, OpResult):
            if isinstance(value.op, simt.BlockLoadOp):
                return value.op.results[0]
            if isinstance(value.op, arith.BitcastOp | vector.BitcastOp):
                return self.root_of(value.op.operands[0])
        return value


class Graph:
    """The dependence graph of a block; operations have numbers in the present order.

    Reads may move past reads and prefetches. Operations that write, wait or are unknown
    keep their place among all operations that touch memory.

    Attributes:
        needs: for each operation, the numbers of those that must precede it.
        reads: for each operation, the registers of its operands (`Registers.root_of`).
        makes: for each operation, the registers of its results.
        anchors: numbers of the operations that a line orders: products, operations with
            effects, those whose result the terminator takes, and the terminator.
        own: registers of values that are defined in the block.
        anchors_before: for each operation, a bit set of the anchors that must precede
            it.
    """

    def __init__(self, block: Block, registers: Registers) -> None:
        self.block = block
        self.ops = list(block.ops)
        self.number: dict[Operation | Block, int] = {
            op: at for at, op in enumerate(self.ops)
        }
        roots = registers.root_of
        self.reads = [
            tuple(dict.fromkeys(map(roots, _operands(op)))) for op in self.ops
        ]
        self.makes = [tuple(dict.fromkeys(map(roots, op.results))) for op in self.ops]
        made = {root for roots in self.makes for root in roots}
        self.own = {root for root in made if root.owner in self.number}
        self.own |= set(block.args)
        handed_on = {value.owner for value in self.ops[-1].operands}
        self.anchors = [
            at
            for at, op in enumerate(self.ops)
            if isinstance(op, simt.PRODUCTS) or op in handed_on or not _may_wait(op)
        ]
        self.needs = list(self._needs())
        self.anchors_before = list(self._anchors_before())

    def behind(self, value: SSAValue) -> Iterator[int]:
        """Yield the operations of the block that a value depends on, in no order."""
        waiting = Worklist([self.number.get(value.owner)] if _is_made(value) else [])
        for at in waiting:
            if at is not None:
                yield at
                waiting += self.needs[at]

    def _needs(self) -> Iterator[Sequence[int]]:
        last, reads = None, list[int]()
        end = len(self.ops) - 1
        for at, op in enumerate(self.ops):
            owners = [self.number.get(v.owner) for v in _operands(op) if _is_made(v)]
            if not is_pure(op):
                owners.append(last)
                if _only_reads(op):
                    reads.append(at)
                elif not isinstance(op, simt.BlockPrefetchOp):
                    owners += reads
                    reads, last = [], at
            found = dict.fromkeys(n for n in owners if n is not None and n != at)
            yield range(end) if at == end else tuple(found)

    def _anchors_before(self) -> Iterator[int]:
        anchors, found = set(self.anchors), list[int]()
        for needs in self.needs:
            bits = 0
            for need in needs:
                bits |= found[need] | (1 << need if need in anchors else 0)
            found.append(bits)
            yield bits


def _operands(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands of an operation and of those in its regions."""
    for inner in op.walk():
        yield from inner.operands


def _is_made(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation)


def _only_reads(op: Operation) -> bool:
    effects = get_effects(op)
    kinds = None if effects is None else {effect.kind for effect in effects}
    return kinds == {MemoryEffectKind.READ} and not op.regions


def _may_wait(op: Operation) -> bool:
    """Whether an operation may move down to right before its first use."""
    return (is_pure(op) or _only_reads(op)) and not op.has_trait(IsTerminator)
