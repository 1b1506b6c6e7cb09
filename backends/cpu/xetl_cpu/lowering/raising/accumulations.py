"""Sums of products that a loop carries, and whether they can leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import TileMmaOp
from xetl_cpu.lowering.raising.streams import Operand, stream_of
from xetl_cpu.lowering.tiles import may_alias, may_write, tile_root, written_root


class NotRaisedError(Exception):
    """Why a product in a loop is not a BRGEMM over all of its trips."""


@dataclass
class Accumulation:
    """A value that each trip adds products to, one after the other.

    Attributes:
        index: which of the carried values it is.
        products: in the order in which they are added.
        operands: a and b of each, as they are in the first trip.
    """

    index: int
    products: Sequence[TileMmaOp]
    operands: Sequence[tuple[Operand, Operand]]


def chain_of(mma: TileMmaOp, loop: scf.ForOp) -> tuple[int, list[TileMmaOp]]:
    """The carried value that ``mma`` adds to, and all products that do.

    Raises:
        NotRaisedError: nothing is carried, or it is used between the steps.
    """
    body, last = loop.body.block, loop.body.block.last_op
    assert last is not None
    products = [mma]
    while (before := _product(products[0].c, loop)) is not None:
        products.insert(0, before)
    carried = products[0].c
    if not isinstance(carried, BlockArgument) or carried.block is not body:
        raise NotRaisedError("what it adds to is computed in each step")
    while (after := _reader(products[-1].result)) is not None:
        products.append(after)
    between = [carried, *(each.result for each in products)]
    is_yielded = last.operands[carried.index - 1] is products[-1].result
    if not is_yielded or not all(_is_used_once(value) for value in between):
        raise NotRaisedError("the accumulator is used between the steps")
    return carried.index - 1, products


def accumulation_of(
    index: int, products: Sequence[TileMmaOp], loop: scf.ForOp
) -> Accumulation:
    """What the loop sums up in a carried value, if memory is all it needs.

    Raises:
        NotRaisedError: an operand is computed, or may be written in the loop.
    """
    operands = [(_operand(x, "a", loop), _operand(x, "b", loop)) for x in products]
    written = [written_root(op) for op in loop.walk() if may_write(op)]
    for one in [each for pair in operands for each in pair]:
        if any(may_alias(tile_root(one.tile), base) for base in written):
            raise NotRaisedError("the loop may write what it multiplies")
    return Accumulation(index, products, operands)


def _product(value: SSAValue | None, loop: scf.ForOp) -> TileMmaOp | None:
    """The product of the loop's body that makes a value."""
    owner = None if value is None else value.owner
    if isinstance(owner, TileMmaOp) and owner.parent is loop.body.block:
        return owner
    return None


def _reader(value: SSAValue) -> TileMmaOp | None:
    """The only reader of a value, if it is a product that adds to it."""
    readers = [use.operation for use in value.uses]
    if len(readers) != 1:
        return None
    (reader,) = readers
    return reader if isinstance(reader, TileMmaOp) and reader.c is value else None


def _is_used_once(value: SSAValue) -> bool:
    return len(list(value.uses)) == 1


def _operand(mma: TileMmaOp, name: str, loop: scf.ForOp) -> Operand:
    value, k_dim = (mma.a, 1) if name == "a" else (mma.b, 0)
    depth = vector_type(mma.a).get_shape()[1]
    found = stream_of(value, loop, depth, k_dim)
    if found is None:
        raise NotRaisedError(
            f"`{name}` is not simply loaded from a tile that moves by {depth} along k"
        )
    return found
