"""The base class of passes, and the builder that inserts operations.

The builder folds index arithmetic. `upper_half` returns the upper half of the product
of two integers.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self, TypeVar

from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from xetl.dialects.base import Index, element_type, with_element
from xetl.dialects.upstream import arith, scf
from xetl.dialects.upstream.elementwise import bit_width

if TYPE_CHECKING:
    from xdsl.pattern_rewriter import PatternRewriter

OpT = TypeVar("OpT", bound=Operation)
T = TypeVar("T")


class Builder:
    """Inserts operations one after the other at a point.

    Index arithmetic takes Python integers and values of type `index`. A result that
    depends on integers only is a Python integer, and no operation is inserted. The
    operands of divisions and remainders must not be negative.

    Args:
        location: the location of inserted operations that have none.
        rewriter: inserts the operations, so that its worklist and listeners see them.
    """

    def __init__(
        self,
        point: InsertPoint,
        location: builtin.LocationAttr | None = None,
        rewriter: PatternRewriter | None = None,
    ) -> None:
        self.point = point
        self.location = location
        self._rewriter = rewriter
        self._computed: dict[Hashable, Any] = {}

    # Where operations go --------------------------------------------------------------

    @classmethod
    def before(cls, op: Operation) -> Self:
        """Return a builder that inserts before ``op``, with its location."""
        return cls(InsertPoint.before(op), op.location)

    @classmethod
    def after(cls, value: Operation | SSAValue) -> Self:
        """Return a builder that inserts directly after an operation.

        For a value, this is the operation that defines it. For a block argument, the
        builder inserts at the start of the block.
        """
        owner = value.owner if isinstance(value, SSAValue) else value
        if isinstance(owner, Block):
            return cls(InsertPoint.at_start(owner))
        return cls(InsertPoint.after(owner), owner.location)

    @classmethod
    def at_end(cls, block: Block, location: builtin.LocationAttr | None = None) -> Self:
        """Return a builder that appends to ``block``."""
        return cls(InsertPoint.at_end(block), location)

    def move_before(self, op: Operation) -> None:
        """Insert before ``op`` from now on, with its location."""
        self.point = InsertPoint.before(op)
        self.location = op.location

    @contextmanager
    def at(self, point: InsertPoint) -> Generator[None]:
        """Insert at ``point`` for the duration of a ``with`` statement."""
        previous, self.point = self.point, point
        try:
            yield
        finally:
            self.point = previous

    def inside(self, block: Block) -> AbstractContextManager[None]:
        """Append to ``block`` for the duration of a ``with`` statement."""
        return self.at(InsertPoint.at_end(block))

    # Operations -----------------------------------------------------------------------

    def add(self, op: OpT) -> OpT:
        """Insert an operation and return it."""
        if self.location is not None:
            for each in op.walk() if op.regions else (op,):
                if isinstance(each.location, builtin.UnknownLoc):
                    each.location = self.location
        point = self.point
        if self._rewriter is not None:
            self._rewriter.insert(op, point)
        elif point.insert_before is None:
            point.block.add_op(op)
        else:
            point.block.insert_op_before(op, point.insert_before)
        return op

    def insert(self, op: Operation) -> SSAValue:
        """Insert an operation and return its first result."""
        return self.add(op).results[0]

    def once(self, key: Hashable, make: Callable[[Self], T]) -> T:
        """Return the result of ``make``, which is called once for each key."""
        if key not in self._computed:
            self._computed[key] = make(self)
        return self._computed[key]

    # Constants and index arithmetic ---------------------------------------------------

    def constant(self, number: int | float, type_: Attribute) -> SSAValue:
        """Insert a constant: a scalar, or a vector with this number in each lane."""
        return self.insert(arith.ConstantOp.of(number, type_))

    def index(self, index: Index) -> SSAValue:
        """Return ``index`` as an SSA value; insert a constant for an integer."""
        if isinstance(index, int):
            return self.constant(index, builtin.IndexType())
        return index

    def pure(self, make: Callable[..., Operation], *operands: Index) -> SSAValue:
        """Insert an operation without side effects; return its result.

        All index arithmetic of this class calls this method, so a subclass can override
        it to reuse or to hoist operations.
        """
        return self.insert(make(*[self.index(each) for each in operands]))

    def plus(self, left: Index, right: Index) -> Index:
        """``left + right``."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if _is(left, 0):
            return right
        return left if _is(right, 0) else self.pure(arith.AddiOp, left, right)

    def minus(self, left: Index, right: Index) -> Index:
        """``left - right``."""
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        return left if _is(right, 0) else self.pure(arith.SubiOp, left, right)

    def times(self, left: Index, right: Index) -> Index:
        """``left * right``."""
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if _is(left, 0) or _is(right, 0):
            return 0
        if _is(left, 1):
            return right
        return left if _is(right, 1) else self.pure(arith.MuliOp, left, right)

    def product(self, factors: Iterable[Index]) -> Index:
        """Return the product of all factors; 1 if there are none."""
        return reduce(self.times, factors, 1)

    def row_major(self, sizes: Sequence[Index], last: Index = 1) -> list[Index]:
        """Return row-major strides; ``last`` is the stride of the last dimension."""
        inner = accumulate(reversed(sizes[1:]), self.times, initial=last)
        return [*inner][::-1][: len(sizes)]

    def divided(self, left: Index, right: Index) -> Index:
        """``left / right``, rounded down."""
        if isinstance(left, int) and isinstance(right, int):
            return left // right
        return left if _is(right, 1) else self.pure(arith.DivuiOp, left, right)

    def ceil_divided(self, left: Index, right: Index) -> Index:
        """``left / right``, rounded up."""
        return self.divided(self.plus(left, self.minus(right, 1)), right)

    def remainder(self, left: Index, right: Index) -> Index:
        """``left`` modulo ``right``."""
        if isinstance(left, int) and isinstance(right, int):
            return left % right
        return 0 if _is(right, 1) else self.pure(arith.RemuiOp, left, right)

    def rounded_up(self, extent: Index, step: int) -> Index:
        """Round ``extent`` up to a multiple of ``step``."""
        return self.times(self.ceil_divided(extent, step), step)

    def minimum(self, left: Index, right: Index) -> Index:
        """The smaller of two signed indices."""
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right)
        return self.pure(arith.MinsiOp, left, right)

    def maximum(self, left: Index, right: Index) -> Index:
        """The larger of two signed indices."""
        if isinstance(left, int) and isinstance(right, int):
            return max(left, right)
        return self.pure(arith.MaxsiOp, left, right)

    def compare(self, predicate: str, left: Index, right: Index) -> SSAValue:
        """Insert `arith.cmpi`; return its i1."""
        op = arith.CmpiOp(predicate, self.index(left), self.index(right))
        return self.insert(op)

    def select(self, condition: SSAValue, yes: Index, no: Index) -> SSAValue:
        """Insert a select of two indices."""
        return self.pure(arith.SelectOp, condition, yes, no)

    # Floats ---------------------------------------------------------------------------

    def widened(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Extend a float, or a vector of floats, unless it has the type already."""
        return self._cast(arith.ExtfOp, value, element)

    def narrowed(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Truncate a float, or a vector of floats, unless it has the type already."""
        return self._cast(arith.TruncfOp, value, element)

    def _cast(
        self, make: Callable[..., Operation], value: SSAValue, element: Attribute
    ) -> SSAValue:
        type_ = with_element(value.type, element)
        return value if type_ == value.type else self.insert(make(value, type_))

    # Control flow ---------------------------------------------------------------------

    def for_loop(
        self, lower: Index, upper: Index, step: Index, inits: Sequence[SSAValue] = ()
    ) -> scf.ForOp:
        """Insert an empty loop that carries ``inits``; the caller adds its yield."""
        lower, upper, step = map(self.index, (lower, upper, step))
        block = Block(arg_types=[builtin.IndexType(), *(value.type for value in inits)])
        return self.add(scf.ForOp(lower, upper, step, list(inits), Region(block)))

    def repeat(self, lower: Index, upper: Index, step: Index) -> tuple[Self, SSAValue]:
        """Insert a loop without values; return a builder for its body, the counter."""
        body, end = self.for_loop(lower, upper, step).body.block, scf.YieldOp()
        body.add_op(end)
        return type(self)(InsertPoint.before(end), self.location), body.args[0]

    def parallel(
        self, extents: Sequence[Index]
    ) -> tuple[Self, Sequence[BlockArgument]]:
        """Insert ``scf.parallel`` from 0; return a builder for its body, the counters.

        ``extents`` are the upper bounds; the steps are 1.
        """
        end = scf.ReduceOp()
        body = Block([end], arg_types=[builtin.IndexType()] * len(extents))
        uppers = [self.index(extent) for extent in extents]
        zeros, ones = ([self.index(v)] * len(uppers) for v in (0, 1))
        self.add(scf.ParallelOp(zeros, uppers, ones, Region(body)))
        return type(self)(InsertPoint.before(end), self.location), body.args

    def conjunction(self, *conditions: SSAValue | None) -> SSAValue | None:
        """Return the conjunction of conditions, lane by lane for vectors.

        A condition of None is always true; return None if all are.
        """
        found: SSAValue | None = None
        for each in conditions:
            if found is None or each is found:
                found = each
            elif each is not None:
                found = self.pure(arith.AndiOp, found, each)
        return found

    def both(self, *conditions: SSAValue) -> SSAValue:
        """Return the `conjunction` of at least one condition that is not None."""
        found = self.conjunction(*conditions)
        assert found is not None
        return found

    def when(self, condition: SSAValue) -> Self:
        """Insert ``scf.if`` without results; returns a builder for its inside."""
        end = scf.YieldOp()
        self.add(scf.IfOp(condition, [], Region(Block([end]))))
        return type(self)(InsertPoint.before(end), self.location)


def remade(op: OpT, operands: Sequence[SSAValue], types: Sequence[Attribute]) -> OpT:
    """Copy an operation without regions, with new operands and result types."""
    return type(op).create(
        operands=operands,
        result_types=types,
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )


def move_before(ops: Iterable[Operation], place: Operation) -> None:
    """Move operations in front of another one."""
    block = place.parent
    assert block is not None
    for op in list(ops):
        op.detach()
        block.insert_op_before(op, place)


def move_to_end(ops: Iterable[Operation], block: Block) -> None:
    """Move operations to the end of a block."""
    for op in list(ops):
        op.detach()
        block.add_op(op)


def _is(index: Index, number: int) -> bool:
    return isinstance(index, int) and index == number


def upper_half(b: Builder, left: SSAValue, right: SSAValue, signed: bool) -> SSAValue:
    """Return the upper half of the product of two integers, or vectors of integers."""
    type_ = left.type
    element = element_type(type_)
    if isinstance(element, builtin.IndexType) or bit_width(element) == 64:
        return _of_64_bits(b, left, right, signed)
    bits = bit_width(element)
    wide = with_element(type_, builtin.IntegerType(2 * bits))
    extend = arith.ExtsiOp if signed else arith.ExtuiOp
    one, other = (b.insert(extend(each, wide)) for each in (left, right))
    product = b.insert(arith.MuliOp(one, other))
    shifted = b.insert(arith.ShruiOp(product, b.constant(bits, wide)))
    return b.insert(arith.TrunciOp(shifted, type_))


def _of_64_bits(b: Builder, left: SSAValue, right: SSAValue, signed: bool) -> SSAValue:
    """Return the upper half for operands of 64 bits, by halves of 32 bits."""
    type_ = left.type
    half = b.constant(32, type_)
    ones = b.constant((1 << 32) - 1, type_)

    def split(value: SSAValue) -> tuple[SSAValue, SSAValue]:
        low = b.insert(arith.AndiOp(value, ones))
        return low, b.insert(arith.ShruiOp(value, half))

    def times(x: SSAValue, y: SSAValue) -> SSAValue:
        return b.insert(arith.MuliOp(x, y))

    def plus(x: SSAValue, y: SSAValue) -> SSAValue:
        return b.insert(arith.AddiOp(x, y))

    (l0, l1), (r0, r1) = split(left), split(right)
    carry = split(times(l0, r0))[1]
    middle, over = split(plus(times(l1, r0), carry))
    rest = split(plus(times(l0, r1), middle))[1]
    high = plus(plus(times(l1, r1), over), rest)
    if not signed:
        return high
    zero = b.constant(0, type_)
    for one, other in ((left, right), (right, left)):
        negative = b.insert(arith.CmpiOp("slt", one, zero))
        extra = b.insert(arith.SelectOp(negative, other, zero))
        high = b.insert(arith.SubiOp(high, extra))
    return high


class Pass(ModulePass):
    """A pass; ``FoldAddIntoMmaPass`` gets the name ``fold-add-into-mma``."""

    def __init_subclass__(cls) -> None:
        """Derive the name of the pass from the name of its class."""
        words = cls.__name__.removesuffix("Pass")
        cls.name = re.sub("(?<=[a-z])(?=[A-Z])", "-", words).lower()

    def apply(self, ctx: Context, op: builtin.ModuleOp) -> None:
        """Call `rewrite`: xDSL's interface has a context, which no pass here needs."""
        self.rewrite(op)

    @abstractmethod
    def rewrite(self, op: builtin.ModuleOp) -> None:
        """Rewrite ``op`` in place."""
