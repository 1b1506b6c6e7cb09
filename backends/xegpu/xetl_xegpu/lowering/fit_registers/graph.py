"""The dependences of a block's operations, and the registers of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator, MemoryEffectKind, get_effects

from xetl.analysis.memory import is_pure
from xetl.dialects.upstream import arith, vector
from xetl.worklist import Worklist
from xetl_xegpu import simt
from xetl_xegpu.lowering.register_need import bytes_of, values_of_lanes


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
    """The registers of a kernel's values; sizes are bytes of a lane.

    Args:
        kernel: at stage ``lanes``.
    """

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
