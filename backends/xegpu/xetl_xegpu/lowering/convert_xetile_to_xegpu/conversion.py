"""The walk through a kernel: each operation is kept, or replaced by its rule.

Scalars stay as they are. Vectors become fragments; tiles and memrefs become records
that describe them. The converter maps each value to its replacement.

New operations are added at the end of the innermost open block. A pure operation that
only needs values of outer blocks is added there instead, and equal operations are
shared. So descriptors, masks and offsets are hoisted out of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple, TypeAlias, TypeVar

from xdsl.dialects.builtin import IndexType, LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.analysis.affine import block_of
from xetl.analysis.ranges import Ranges
from xetl.devices import Device
from xetl.dialects.base import Index, Vector, is_memref, is_vector, known, vector_type
from xetl.dialects.kernel_attributes import subgroups_along_axes
from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import arith, gpu, vector
from xetl.dialects.upstream.elementwise import ElementwiseOp
from xetl.dialects.upstream.gpu import FuncOp
from xetl.dialects.xetile import TileType
from xetl.ir.builder import Builder
from xetl.ir.conversion import Carried
from xetl.transforms.diagnostics import refusal

from .fragments import (
    LANES,
    Fragments,
    Lowered,
    MmaOperand,
    Scattered,
    Tile,
    View,
    fragment_types,
    grid_for,
    vector_of,
)
from .plan import Plan


class _Scope(NamedTuple):
    block: Block
    known: dict[Hashable, SSAValue]


class Emitter(Builder):
    """A builder for the innermost open block of a kernel; it hoists pure operations.

    At first that is ``block``, the body of the kernel.
    """

    def __init__(self, block: Block, location: LocationAttr) -> None:
        super().__init__(InsertPoint.at_end(block), location)
        self._scopes = [_Scope(block, {})]
        self._depths: dict[Block | None, int] = {block: 0}
        self._sums: dict[SSAValue, tuple[SSAValue, int]] = {}

    def keep(self, op: Operation) -> None:
        """Add an operation that stays as it is, with its location.

        Arithmetic on scalars is hoisted as far as possible: most of what a loop
        computes about a matrix is loop-invariant.
        """
        scope = self._scopes[-1]
        if isinstance(op, _SPECULATABLE):
            scope = self._outermost(op.operands)
        scope.block.add_op(op)

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Add to ``block`` in the context; it will be nested in the innermost block."""
        self._depths[block] = len(self._scopes)
        self._scopes.append(_Scope(block, {}))
        try:
            with super().inside(block):
                yield
        finally:
            self._scopes.pop()

    def shared(
        self, key: Hashable, operands: Sequence[SSAValue], make: Callable[[], Operation]
    ) -> SSAValue:
        """Return the result of a pure operation, shared and hoisted as far as possible.

        Args:
            key: identifies the operation; equal keys and operands give equal values.
            operands: all values that it depends on.
        """
        scope = self._outermost(operands)
        whole = (key, *operands)
        found = scope.known.get(whole)
        if found is None:
            with self.at(InsertPoint.at_end(scope.block)):
                found = scope.known[whole] = self.insert(make())
        return found

    def _outermost(self, operands: Sequence[SSAValue]) -> _Scope:
        """Return the outermost open block in which all operands are visible."""
        return self._scopes[
            max((self._depths[block_of(v)] for v in operands), default=0)
        ]

    def is_outside(self, value: SSAValue) -> bool:
        """Whether a value is defined in one of the open blocks."""
        block = block_of(value)
        return any(scope.block is block for scope in self._scopes)

    # Constants and indices ----------------------------------------------------------

    def constant(self, number: int | float, type_: Attribute) -> SSAValue:
        """Return a constant: a number, or a vector full of it."""
        key = ("constant", repr(number), type_)
        return self.shared(
            key, (), lambda: arith.ConstantOp(make_splat(number, type_), type_)
        )

    def pure(self, make: Callable[..., Operation], *operands: Index) -> SSAValue:
        """Return the result of an operation on indices; see `shared`."""
        values = [self.index(each) for each in operands]
        return self.shared(make, values, lambda: make(*values))

    def plus(self, left: Index, right: Index) -> Index:
        """Return a sum. Constants are collected into one last summand."""
        left, right = known(left), known(right)
        if isinstance(left, int):
            left, right = right, left
        if isinstance(left, int) or not isinstance(right, int):
            return super().plus(left, right)
        base, before = self._sums.get(left, (left, 0))
        if before + right == 0:
            return base
        found = self.pure(arith.AddiOp, base, before + right)
        self._sums[found] = base, before + right
        return found

    def minus(self, left: Index, right: Index) -> Index:
        """Return a difference."""
        right = known(right)
        if isinstance(right, int):
            return self.plus(left, -right)
        return self.pure(arith.SubiOp, left, right)

    def times(self, left: Index, right: Index) -> Index:
        """Return a product. The constant summand of a factor stays the last summand."""
        left, right = known(left), known(right)
        if isinstance(left, int):
            left, right = right, left
        if isinstance(left, SSAValue) and isinstance(right, int):
            base, more = self._sums.get(left, (left, 0))
            if more:
                return self.plus(self.times(base, right), more * right)
        return super().times(left, right)

    def constant_part(self, sum_: Index) -> tuple[Index, int]:
        """Split a sum into the rest and its constant summand."""
        sum_ = known(sum_)
        return (0, sum_) if isinstance(sum_, int) else self._sums.get(sum_, (sum_, 0))

    def compare(self, predicate: str, left: Index, right: Index) -> SSAValue:
        """Return the result of `arith.cmpi`, also on vectors; see `shared`."""
        pair = self.index(left), self.index(right)
        return self.shared(predicate, pair, lambda: arith.CmpiOp(predicate, *pair))


_SPECULATABLE = (
    *(arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.SelectOp),
    *(arith.AndiOp, arith.OriOp, arith.XoriOp, arith.CmpiOp, arith.IndexCastOp),
    *(arith.MinsiOp, arith.MaxsiOp, arith.MinuiOp, arith.MaxuiOp),
    *(arith.ExtsiOp, arith.ExtuiOp, arith.TrunciOp, arith.TruncfOp, arith.ExtfOp),
)
"""Cheap operations without effects, which may run although no result is needed."""


LoweredT = TypeVar("LoweredT", bound=Lowered)

Rule: TypeAlias = Callable[["Converter", Any], object]
"""Replaces an operation: adds new ones, and calls `Converter.set` for its results."""


def nothing(c: Converter, op: Operation) -> None:
    """The rule of operations that are dropped."""


def is_replaced(value: SSAValue) -> bool:
    """Whether the conversion replaces a value: a vector, a tile or a memref."""
    type_ = value.type
    return is_vector(type_) or isinstance(type_, TileType) or is_memref(type_)


class Converter:
    """The state of one kernel's conversion.

    Args:
        plan: the analysis of the kernel before the conversion.
        otherwise: the rule of elementwise operations.
        carried: how control flow carries a value.
    """

    def __init__(
        self,
        kernel: FuncOp,
        device: Device,
        plan: Plan,
        rules: Mapping[type[Operation], Rule],
        otherwise: Rule,
        carried: Callable[[Converter, SSAValue, Operation], Carried],
    ) -> None:
        self.kernel = kernel
        self.device = device
        self.plan = plan
        self.emit = Emitter(kernel.body.block, kernel.location)
        self.block_arguments: set[int] = set()
        self.sliced_arguments: set[int] = set()
        self.ranges = Ranges(self.subgroups)
        self._rules = rules
        self._otherwise = otherwise
        self._carried = carried
        self._found: dict[SSAValue, Lowered] = {}
        self._replaced: list[Operation] = []

    # The walk -----------------------------------------------------------------------

    def convert(self, block: Block) -> None:
        """Replace or keep all operations of a block, in their order."""
        self.run_all(list(block.ops))

    def run_all(self, operations: Sequence[Operation]) -> None:
        """Replace or keep these operations."""
        for op in operations:
            self.emit.location = op.location
            rule = self.plan.kept.get(op) or self._rules.get(type(op))
            rule = rule or self._general(op)
            if rule is None:
                self.keep(op)
                continue
            self._replaced.append(op)
            rule(self, op)

    def _general(self, op: Operation) -> Rule | None:
        is_plain = not any(is_replaced(value) for value in (*op.operands, *op.results))
        if is_plain and not op.regions:
            return None
        if not is_plain and isinstance(op, ElementwiseOp):
            return self._otherwise
        raise self.refusal(op, "it has no form on this device")

    def keep(self, op: Operation) -> None:
        """Let an operation stay, in the innermost open block."""
        if self._replaced and self._replaced[-1] is op:
            self._replaced.pop()
        op.detach()
        self.emit.keep(op)

    def finish(self) -> None:
        """Erase the operations that have been replaced, users first."""
        for op in reversed(self._replaced):
            Rewriter.erase_op(op, safe_erase=False)
        self._replaced.clear()

    def refusal(self, op: Operation, message: str, help: str = "") -> Exception:
        """Return the error that an operation cannot run here, with its line."""
        advice = help or "write it with other operations, or run it on `cpu`"
        return refusal(op, message, advice)

    # Control flow, see `xetl.ir.conversion` ------------------------------------------

    def carried(self, value: SSAValue, op: Operation) -> Carried:
        """How ``op`` carries a value."""
        return self._carried(self, value, op)

    def converted(self, value: SSAValue) -> SSAValue:
        """Return a scalar as it is: `bind` has replaced its uses."""
        return value

    # Values -------------------------------------------------------------------------

    def set(self, value: SSAValue, found: Lowered) -> None:
        """Set the replacement of a value."""
        self._found[value] = found

    def set_fragments(self, value: SSAValue, parts: Sequence[SSAValue]) -> None:
        """Set the fragments of a vector."""
        type_ = vector_type(value)
        assert len(parts) == grid_for(type_).count
        element = vector_type(parts[0]).element_type  # an f32 stands for a tf32
        self._found[value] = Fragments(type_.get_shape(), element, parts)

    def bind(self, value: SSAValue, new: SSAValue) -> None:
        """Replace all uses of a scalar by another one."""
        if new.name_hint is None:
            new.name_hint = value.name_hint
        value.replace_all_uses_with(new)

    def lowered(self, value: SSAValue) -> Lowered:
        """Return the replacement of a value."""
        return self._found[value]

    def has(self, value: SSAValue) -> bool:
        """Whether a value has a replacement already."""
        return value in self._found

    def _found_as(self, value: SSAValue, kind: type[LoweredT]) -> LoweredT:
        found = self._found[value]
        assert isinstance(found, kind), f"{type(found)} is no {kind}"
        return found

    def fragments(self, value: SSAValue) -> Fragments:
        """Return the fragments of a vector, which is no operand of a product only."""
        return self._found_as(value, Fragments)

    def operand(self, value: SSAValue) -> Fragments | MmaOperand:
        """Return a vector as fragments, or in the form of an operand of a product."""
        found = self._found[value]
        return found if isinstance(found, MmaOperand) else self.fragments(value)

    def tile(self, value: SSAValue) -> Tile:
        """Return a tile that is a block."""
        return self._found_as(value, Tile)

    def scattered(self, value: SSAValue) -> Scattered:
        """Return a tile with an offset for each element."""
        return self._found_as(value, Scattered)

    def view(self, value: SSAValue) -> View:
        """Return the description of a memref."""
        return self._found_as(value, View)

    def index(self, value: SSAValue | Index) -> SSAValue:
        """An index as a value."""
        return self.emit.index(value)

    # Often needed -------------------------------------------------------------------

    def widened(self, pieces: Fragments, element: Attribute) -> Fragments:
        """Extend floats to the element type, unless they have it already."""
        return pieces.mapped(element, lambda part: self.emit.widened(part, element))

    def narrowed(self, pieces: Fragments, element: Attribute) -> Fragments:
        """Truncate floats to the element type, unless they have it already."""
        return pieces.mapped(element, lambda part: self.emit.narrowed(part, element))

    def splat(self, number: int | float, type_: Vector) -> list[SSAValue]:
        """Fragments full of a number."""
        return [self.emit.constant(number, each) for each in fragment_types(type_)]

    @property
    def along_axes(self) -> tuple[int, int, int]:
        """Subgroups along x, y and z."""
        return subgroups_along_axes(self.kernel)

    @property
    def subgroups(self) -> int:
        """The number of subgroups in a workgroup."""
        return prod(self.along_axes)

    def subgroup_id(self) -> Index:
        """Return the index of this subgroup in its workgroup."""
        if self.subgroups == 1:
            return 0
        return self.emit.shared("subgroup", (), lambda: gpu.SubgroupIdOp())

    def lane_ids(self) -> SSAValue:
        """0 to 15, one for each lane."""
        type_ = vector_of(IndexType(), LANES)
        return self.emit.shared("lanes", (), lambda: vector.StepOp(type_))

    def spread(self, value: SSAValue, *shape: int) -> SSAValue:
        """Broadcast a scalar or fragment to a shape; the result is shared."""
        element: Attribute = value.type
        if is_vector(element):
            if element.get_shape() == shape:
                return value
            element = element.element_type
        type_ = vector_of(element, *shape)
        return self.emit.shared(
            ("spread", shape), [value], lambda: vector.BroadcastOp(value, type_)
        )
