"""Fold constants, drop unused operations, and resolve branches on constants.

*What*: fold constants in integer arithmetic, comparisons and casts; fold select and if
on constants, casts to the same type, and sizes and strides that a type states; remove
loops that do not run, a barrier right after another one, and dead code; compute in f32
the f64 sums, products and extremes of f32 values that are rounded to f32 again; compute
in the narrow type a select of floats that are widened first and narrowed again.
*Why*: the front end and the lowerings write the plain form, and this pass simplifies
it. One forward sweep folds chains, as operands come before their users.
*Left alone*: stores, prefetches, other barriers, other float arithmetic (the program
says how it rounds), and all operations with a workgroup map.

before: %c = arith.addi %c2, %c3    scf.if %true { A } else { B }
after:  %c = arith.constant 5       A
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.analysis.memory import is_dead, is_second_barrier
from xetl.dialects.base import element_type
from xetl.dialects.upstream import arith, memref, scf
from xetl.ir.builder import Builder, Pass, move_before
from xetl.transforms.canonicalize import folding

FOLDS = {**folding.ARITHMETIC_FOLDS, **folding.SHAPE_FOLDS}
# Each sweep uses what the sweep before has folded; more were never needed.
MOST_SWEEPS = 10


def canonicalize(op: Operation) -> None:
    """Bring everything inside ``op`` to canonical form."""
    for _ in range(MOST_SWEEPS):
        changed = any([_fold_region(region) for region in op.regions])
        dead = any([_erase_dead(region) for region in op.regions])
        if not (changed or dead):
            return


def _fold_region(region: Region) -> bool:
    changed = False
    for block in region.blocks:
        op = block.first_op
        while op is not None:
            following = op.next_op
            inlined = _fold_control_flow(op)
            if inlined is not None:
                changed = True
                # The operations of the region are now in the place of the op.
                op = inlined if inlined is not op else following
                continue
            changed |= _fold_op(op) or _narrow(op)
            for nested in op.regions:
                changed |= _fold_region(nested)
            op = following
    return changed


def _fold_op(op: Operation) -> bool:
    if isinstance(op, memref.ExtractStridedMetadataOp):
        pairs = folding.static_metadata(op)
        for value, attribute in pairs:
            value.replace_all_uses_with(_materialize(attribute, value, op))
        return bool(pairs)
    fold = FOLDS.get(type(op))
    if fold is None:
        return False
    folded = fold(op)
    if folded is None:
        return False
    result = op.results[0]
    # The user or a pass wants the map on this op. A constant or another value would
    # lose it.
    if "map" in op.attributes:
        return False
    if isinstance(folded, Attribute):
        folded = _materialize(folded, result, op)
    elif result.name_hint is not None and folded.name_hint is None:
        folded.name_hint = result.name_hint
    Rewriter.replace_op(op, [], [folded])
    return True


def _narrow(op: Operation) -> bool:
    """Compute in f32 a sum or product of f32 values in f64 that is rounded to f32.

    A select in a wide type, of narrow values, becomes one in the narrow type (any
    type). The results are the same: f64 has more than twice the bits of f32. Source:
    Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995. The
    least or largest of an f32 value and any other is found in f32, because rounding
    keeps the order of numbers.
    """
    wide = op.operands[0].owner if isinstance(op, arith.TruncfOp) else None
    if not isinstance(wide, _NARROWED) or "map" in {*op.attributes, *wide.attributes}:
        return False
    result = op.results[0]
    types = element_type(result.type), element_type(wide.results[0].type)
    if types != (f32, f64) and not isinstance(wide, arith.SelectOp):
        return False
    *condition, left, right = wide.operands
    sides = [folding.narrower(each, result.type) for each in (left, right)]
    if None in sides and (sides == [None, None] or not isinstance(wide, _ORDERED)):
        return False
    for n, each in enumerate((left, right)):
        if sides[n] is None:
            sides[n] = Builder.before(op).insert(arith.TruncfOp(each, result.type))
    given = [
        _materialize(each, result, op) if isinstance(each, Attribute) else each
        for each in sides
    ]
    # Without `contract`: no later pass may drop this rounding by fusing operations.
    new = type(wide)(*condition, *given, location=op.location)
    Rewriter.replace_op(op, new)
    return True


_ORDERED = (arith.MinimumfOp, arith.MaximumfOp, arith.MinnumfOp, arith.MaxnumfOp)
_NARROWED = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.SelectOp, *_ORDERED)
"""Quotients are not listed: f32 division on GPUs may be wrong in the last bits."""


def _materialize(value: Attribute, result: SSAValue, op: Operation) -> SSAValue:
    """Insert a constant in front of ``op``, with its location; return its value."""
    constant = arith.ConstantOp(value, result.type, location=op.location)
    constant.result.name_hint = result.name_hint
    Rewriter.insert_op(constant, InsertPoint.before(op))
    return constant.result


def _fold_control_flow(op: Operation) -> Operation | None:
    """Inline a conditional or drop a loop; return what comes next, None if it stays."""
    if isinstance(op, scf.IfOp):
        known = folding.integer_of(op.condition)
        if known is None:
            return None
        return _inline(op, op.then_region if known else op.else_region)
    if isinstance(op, scf.ForOp) and _never_runs(op):
        return _replace(op, op.init_args)
    return None


def _never_runs(op: scf.ForOp) -> bool:
    bounds = op.lower_bound, op.upper_bound
    lower, upper = map(folding.integer_of, bounds)
    is_empty = lower is not None and upper is not None and lower >= upper
    return bounds[0] is bounds[1] or is_empty


def _inline(op: Operation, region: Region) -> Operation:
    """Replace ``op`` by the operations in the only block of a region."""
    following = op.next_op
    assert op.parent is not None
    if not region.blocks:
        return _replace(op, ())
    body = region.block
    last = body.last_op
    yielded = list(last.operands) if last is not None else []
    if last is not None:
        Rewriter.erase_op(last)
    first = body.first_op
    move_before(body.ops, op)
    _replace(op, yielded)
    return first or following or op


def _replace(op: Operation, values: Iterable[SSAValue]) -> Operation:
    """Replace the results of ``op`` by ``values``; return ``op``, which is erased."""
    Rewriter.replace_op(op, [], list(values))
    return op


def _erase_dead(region: Region) -> bool:
    """Erase dead operations, users first: their operands then become dead as well."""
    changed = False
    for block in region.blocks:
        for op in reversed(list(block.ops)):
            for nested in op.regions:
                changed |= _erase_dead(nested)
            if is_dead(op) or is_second_barrier(op):
                Rewriter.erase_op(op)
                changed = True
    return changed


class CanonicalizePass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        canonicalize(op)
