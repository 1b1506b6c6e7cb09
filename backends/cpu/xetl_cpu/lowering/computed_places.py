"""Tasks of programs that compute their place: ``%x % %tiles``, ``%x // %tiles``.

So a grid of one dimension walks the tiles of a matrix (Triton's usual order).
"""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis.affine import divisor_of, is_defined_outside
from xetl.dialects.base import Index
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Builder
from xetl.records import record
from xetl_cpu.lowering.tiles import is_non_negative


@record()
class Remainder:
    """``%x - %x // %tiles * %tiles`` of a program's number, 0 or more.

    Attributes:
        number: of the program.
        place: the remainder, or what is 0 instead where there are no tiles.
        quotient: what divides by the tiles.
        product: what multiplies by them.
    """

    number: BlockArgument
    place: SSAValue
    quotient: Operation
    product: Operation


def remainders(loop: scf.ParallelOp) -> list[Remainder]:
    """Of programs that differ by their remainder and quotient alone."""
    found: list[Remainder] = []
    for op in loop.body.block.ops:
        divisor = divisor_of(op.results[0]) if isinstance(op, arith.SubiOp) else None
        if divisor is None or not is_non_negative(divisor):
            continue
        number, product = op.operands[0], op.operands[1].owner
        assert isinstance(product, Operation)
        quotient = product.operands[0].owner
        assert isinstance(quotient, Operation)
        if number not in loop.body.block.args or not is_defined_outside(divisor, loop):
            continue
        assert isinstance(number, BlockArgument)
        others = {use.operation for use in number.uses} - {op, quotient}
        is_alone = {use.operation for use in product.results[0].uses} == {op}
        if is_alone and all(_is_for_minus_one(each, divisor) for each in others):
            place = _guarded(op.results[0])
            found.append(Remainder(number, place, quotient, product))
    return found


def _guarded(remainder: SSAValue) -> SSAValue:
    """What the front end makes of it: 0, where the divisor is not 0 but 1."""
    users = [use.operation for use in remainder.uses]
    select = users[0] if len(users) == 1 else None
    is_guard = isinstance(select, arith.SelectOp) and remainder is select.false_value
    return select.results[0] if is_guard and select is not None else remainder


def _is_for_minus_one(op: Operation, divisor: SSAValue) -> bool:
    """Whether ``-x`` is chosen only where the divisor is not -1 but 1."""
    guard = divisor.owner
    if not isinstance(op, arith.SubiOp) or not isinstance(guard, arith.SelectOp):
        return False
    users = [use.operation for use in op.results[0].uses]
    return constant_index(guard.true_value) == 1 and all(
        isinstance(each, arith.SelectOp) and each.condition is guard.condition
        for each in users
    )


def divide_grid(
    loop: scf.ParallelOp, remainder: Remainder, times: Index, most: int
) -> SSAValue:
    """Let up to ``times`` programs, ``most`` at most, become one; returns how many.

    That is a power of two by which the tiles and the grid can be divided: then no task
    goes beyond a row of tiles, or the grid.
    """
    build, divisor = Builder.before(loop), remainder.product.operands[1]
    at = len(loop.upper_bounds) + remainder.number.index
    both = build.pure(arith.OriOp, loop.operands[at], divisor)
    dividing = build.pure(arith.AndiOp, both, build.minus(0, both))
    some: Index = 1
    for power in range(1, most.bit_length()):
        is_less = build.compare("slt", times, 1 << power)
        some = build.select(is_less, some, 1 << power)
    # It is no less than 1: this proves it.
    some = build.index(build.maximum(build.minimum(dividing, some), 1))
    loop.operands[at] = build.index(build.divided(loop.operands[at], some))
    fewer = build.index(build.divided(divisor, some))
    for op in (remainder.quotient, remainder.product):
        op.operands[1] = fewer
    return some
