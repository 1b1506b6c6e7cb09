"""Where new operations go, and arithmetic on indices that is done once.

New operations are added at the end of the innermost open block.  What is pure and only
needs values of blocks further out goes there instead, and the same question there gives
the same value: so descriptors, masks and offsets leave the loops they do not depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from xdsl.dialects.builtin import IndexType, LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.literals import make_splat
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import arith

OpT = TypeVar("OpT", bound=Operation)


class _Scope(NamedTuple):
    block: Block
    known: dict[Hashable, SSAValue]


class Emitter:
    """The open blocks of a kernel, the outermost first.

    Args:
        block: the body of the kernel.
        location: of what is added until `location` is set anew.
    """

    def __init__(self, block: Block, location: LocationAttr) -> None:
        self.location = location
        self._scopes = [_Scope(block, {})]
        self._depths = {block: 0}
        self._sums: dict[SSAValue, tuple[SSAValue, int]] = {}

    # Operations ---------------------------------------------------------------------

    def add(self, op: OpT) -> OpT:
        """Add an operation to the innermost block."""
        op.location = self.location
        self._scopes[-1].block.add_op(op)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Add an operation; its first result."""
        return self.add(op).results[0]

    def keep(self, op: Operation) -> None:
        """Add an operation that stays as it is, its place in the source too.

        Arithmetic on scalars goes as far out as may be: what a kernel says of a matrix
        in each turn of a loop is mostly the same each time.
        """
        scope = self._scopes[-1]
        if isinstance(op, _SPECULATABLE):
            scope = self._scopes[max((self._depth(v) for v in op.operands), default=0)]
        scope.block.add_op(op)

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """For a while add to ``block``, which will stand in the innermost one."""
        self._depths[block] = len(self._scopes)
        self._scopes.append(_Scope(block, {}))
        try:
            yield
        finally:
            self._scopes.pop()

    def once(
        self,
        key: Hashable,
        operands: Sequence[SSAValue],
        make: Callable[[], Operation],
    ) -> SSAValue:
        """What a pure operation gives, made once and as far out as may be.

        Args:
            key: what it does; equal keys and operands give equal values.
            operands: all values it depends on.
            make: makes it.
        """
        scope = self._scopes[max((self._depth(v) for v in operands), default=0)]
        whole = (key, *operands)
        found = scope.known.get(whole)
        if found is None:
            op = make()
            op.location = self.location
            scope.block.add_op(op)
            found = scope.known[whole] = op.results[0]
        return found

    def _depth(self, value: SSAValue) -> int:
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        assert block is not None
        return self._depths[block]

    def is_outside(self, value: SSAValue) -> bool:
        """Whether a value can be seen from the innermost open block."""
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        return any(scope.block is block for scope in self._scopes)

    # Constants and indices ----------------------------------------------------------

    def constant(self, number: int | float, type_: Attribute) -> SSAValue:
        """A number, or a vector full of it."""
        key = ("constant", repr(number), type_)
        return self.once(
            key, (), lambda: arith.ConstantOp(make_splat(number, type_), type_)
        )

    def index(self, value: Index) -> SSAValue:
        """An index as a value."""
        return self.constant(value, IndexType()) if isinstance(value, int) else value

    def plus(self, left: Index, right: Index) -> Index:
        """A sum; constants are gathered at its end."""
        left, right = known(left), known(right)
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if isinstance(left, int):
            left, right = right, left
        assert isinstance(left, SSAValue)
        if not isinstance(right, int):
            return self._binary(arith.AddiOp, left, right)
        base, before = self._sums.get(left, (left, 0))
        if before + right == 0:
            return base
        found = self._binary(arith.AddiOp, base, self.index(before + right))
        self._sums[found] = base, before + right
        return found

    def minus(self, left: Index, right: Index) -> Index:
        """A difference."""
        right = known(right)
        if isinstance(right, int):
            return self.plus(left, -right)
        return self._binary(arith.SubiOp, self.index(left), right)

    def times(self, left: Index, right: Index) -> Index:
        """A product."""
        left, right = known(left), known(right)
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if isinstance(left, int):
            left, right = right, left
        if right in (0, 1):
            return left if right == 1 else 0
        return self._binary(arith.MuliOp, self.index(left), self.index(right))

    def chosen(self, condition: SSAValue, yes: Index, no: Index) -> SSAValue:
        """One of two indices."""
        values = condition, self.index(yes), self.index(no)
        return self.once("select", values, lambda: arith.SelectOp(*values))

    def below(self, left: Index, right: Index) -> SSAValue:
        """Whether ``0 <= left < right``: one comparison without signs."""
        values = self.index(left), self.index(right)
        return self.once("ult", values, lambda: arith.CmpiOp("ult", *values))

    def both(self, *conditions: SSAValue | None) -> SSAValue | None:
        """Whether all conditions hold; None, here and there: always."""
        found: SSAValue | None = None
        for each in conditions:
            if each is not None:
                found = each if found is None else self._and(found, each)
        return found

    def _and(self, left: SSAValue, right: SSAValue) -> SSAValue:
        if left is right:
            return left
        return self._binary(arith.AndiOp, left, right)

    def _binary(
        self, make: Callable[[SSAValue, SSAValue], Operation], *pair: SSAValue
    ) -> SSAValue:
        return self.once(make, pair, lambda: make(*pair))


_SPECULATABLE = (
    *(arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.SelectOp),
    *(arith.AndiOp, arith.OriOp, arith.XoriOp, arith.CmpiOp, arith.IndexCastOp),
    *(arith.MinsiOp, arith.MaxsiOp, arith.MinuiOp, arith.MaxuiOp),
    *(arith.ExtsiOp, arith.ExtuiOp, arith.TrunciOp, arith.TruncfOp, arith.ExtfOp),
)
"""What costs little and does nothing when its result is not used."""


def known(value: Index) -> Index:
    """The number of a constant, anything else as it is."""
    if isinstance(value, int):
        return value
    constant = constant_index(value)
    return value if constant is None else constant
