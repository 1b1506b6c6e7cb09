"""What can be proven about index values: constants, multiples, signs."""

from __future__ import annotations

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from xetl.dialects.kinds_of_types import is_integer_attr
from xetl.dialects.upstream import arith, func, gpu, memref, scf
from xetl_cpu.dialect import FibersOp

_KEEPS_SIGN = (
    arith.AddiOp,
    arith.MuliOp,
    arith.CeildivsiOp,
    arith.FloordivsiOp,
    arith.DivsiOp,
    arith.DivuiOp,
    arith.RemuiOp,
    arith.MinsiOp,
)


def constant_of(value: SSAValue | int) -> int | None:
    """The integer an index value is known to be."""
    if isinstance(value, int):
        return value
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and is_integer_attr(owner.value):
        return owner.value.value.data
    return None


def is_non_negative(value: SSAValue | int) -> bool:
    """True when the value is proven to be >= 0 (False says nothing)."""
    known = constant_of(value)
    if known is not None:
        return known >= 0
    assert isinstance(value, SSAValue)
    if isinstance(value, BlockArgument):
        return _argument_is_non_negative(value)
    owner = value.owner
    if isinstance(owner, _KEEPS_SIGN):
        return all(is_non_negative(operand) for operand in owner.operands)
    if isinstance(owner, arith.MaxsiOp):
        return any(is_non_negative(operand) for operand in owner.operands)
    if isinstance(owner, arith.SelectOp):
        return all(is_non_negative(operand) for operand in owner.operands[1:])
    if isinstance(owner, memref.ExtractStridedMetadataOp):
        rank = (len(owner.results) - 2) // 2
        return any(value is size for size in owner.results[2 : 2 + rank])
    return isinstance(owner, gpu.BlockIdOp | gpu.GridDimOp | memref.DimOp)


def _argument_is_non_negative(value: BlockArgument) -> bool:
    """Programs' numbers, grid sizes and counters of loops that start at >= 0."""
    parent = value.block.parent_op()
    if isinstance(parent, scf.ParallelOp | FibersOp):
        return True
    if isinstance(parent, func.FuncOp):
        return any(_ends_programs(use.operation, value) for use in value.uses)
    if isinstance(parent, scf.ForOp) and value.index == 0:
        return is_non_negative(parent.lower_bound) and is_non_negative(parent.step)
    return False


def _ends_programs(op: Operation, value: SSAValue) -> bool:
    """True for the loop over programs, if it ends at ``value``: a size of the grid."""
    return isinstance(op, scf.ParallelOp) and value in op.upper_bounds


def multiple_of(value: SSAValue | int, factor: int) -> SSAValue | None:
    """``x`` when the value is ``x * factor``, else None."""
    if isinstance(value, int):
        return None
    owner = value.owner
    if factor == 1 and not isinstance(owner, arith.ConstantOp):
        return value
    if isinstance(owner, arith.MuliOp):
        left, right = owner.operands
        if constant_of(right) == factor:
            return left
        if constant_of(left) == factor:
            return right
    return None


_KEEPS_FACTOR = (arith.AddiOp, arith.SubiOp, arith.MinsiOp, arith.MaxsiOp)


def is_multiple_of(value: SSAValue | int, factor: int) -> bool:
    """True when the value is proven to be a multiple of ``factor``."""
    known = constant_of(value)
    if known is not None:
        return known % factor == 0
    assert isinstance(value, SSAValue)
    if factor == 1 or multiple_of(value, factor) is not None:
        return True
    op = value.owner
    if isinstance(op, arith.SelectOp):
        return all(is_multiple_of(each, factor) for each in op.operands[1:])
    if isinstance(op, arith.MuliOp):
        return any(is_multiple_of(each, factor) for each in op.operands)
    return isinstance(op, _KEEPS_FACTOR) and all(
        is_multiple_of(each, factor) for each in op.operands
    )


def is_defined_outside(value: SSAValue | int, op: Operation) -> bool:
    """True when the value does not change inside ``op``'s regions."""
    if isinstance(value, int):
        return True
    block: Block | None = (
        value.owner if isinstance(value.owner, Block) else value.owner.parent
    )
    while block is not None:
        parent = block.parent_op()
        if parent is op:
            return False
        block = parent.parent if parent is not None else None
    return True


def dominates(value: SSAValue | int, op: Operation) -> bool:
    """True when ``value`` is available right before ``op``."""
    if isinstance(value, int):
        return True
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    here: Operation | None = op
    while here is not None and here.parent is not block:
        here = here.parent_op()
    if here is None:
        return False
    return isinstance(owner, Block) or owner.is_before_in_block(here)
