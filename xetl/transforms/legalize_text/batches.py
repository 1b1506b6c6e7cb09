"""Batch-reduce products on memrefs as loops over tiles.

    linalg.generic ins(%a, %b) outs(%c)    // c[m, n] += a[batch, m, k] * b[batch, k, n]
    ->
    scf.for %m, %n by tiles { acc = load c; scf.for %batch { acc += a @ b }; store acc }

Blocks of b are stored as (k, n), or in pairs of k as (k / 2, n, 2), the VNNI layout. A
`vector.contract` of vectors that are read whole from memory, and whose result is
written back whole, means the same. Source: seeds 003 and 004; libxsmm, BRGEMM.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, StringAttr, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from xetl.dialects import base
from xetl.dialects.memref_layout import has_static_layout
from xetl.dialects.upstream import arith, linalg, scf, vector
from xetl.dialects.verify import LocatedVerifyException
from xetl.dialects.xetile import LoadTileOp, StoreTileOp, TileMmaOp
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.legalize_text.products import (
    COLUMNS,
    PAIR,
    ROWS,
    SUMS,
    Matrix,
    loops,
    part,
    rows_of_pairs,
)
from xetl.transforms.rewriting import Rule, Values


@record(frozen=True)
class Batch:
    """``c += sum of a[i] @ b[i]``, or ``c = ...`` if ``adds`` is false.

    Attributes:
        a: blocks, (batch, m, k).
        b: blocks, (batch, k, n) or (batch, k / 2, n, 2).
        count: how many blocks are multiplied.
        adds: whether the sum is added to the elements of ``c``.
    """

    a: SSAValue
    b: SSAValue
    c: SSAValue
    count: int
    adds: bool = True

    @property
    def in_pairs(self) -> bool:
        """Whether b is in VNNI layout: pairs of consecutive k are contiguous."""
        return base.memref_type(self.b).get_num_dims() == 4

    def problem(self) -> str | None:
        """Return why this is no product of batches of blocks. Return None if it is."""
        types = [base.memref_type(each) for each in (self.a, self.b, self.c)]
        if [type_.get_num_dims() for type_ in types] != [3, 3 + self.in_pairs, 2]:
            return "it takes two batches of blocks, and a matrix"
        if not all(has_static_layout(type_) for type_ in types):
            return "a shape or stride is not known from the types"
        of_a, of_b, of_c = (type_.get_shape() for type_ in types)
        (batch, m, k), n = of_a, of_c[1]
        inner = (k // PAIR, n, PAIR) if self.in_pairs else (k, n)
        if of_b != (batch, *inner) or of_c[0] != m or (self.in_pairs and k % PAIR):
            return "the extents of its operands do not agree"
        if not 0 <= self.count <= batch:
            return f"there are {batch} blocks, not {self.count}"
        a, b, c = (type_.element_type for type_ in types)
        if a != b or str(a) not in SUMS or c not in (a, SUMS[str(a)]):
            return f"there are no sums in {c} of products of {a} by {b}"
        return None


def multiply(b: Builder, product: Batch) -> None:
    """Insert the loops; a VerifyException if it is no product of batches of blocks."""
    problem = product.problem()
    if problem is not None:
        raise VerifyException(problem)
    to = Matrix(b, product.c)
    sums = SUMS[str(base.memref_type(product.a).element_type)]
    shape = to.tile_shape((ROWS, COLUMNS))
    build, at = loops(b, to.sizes, shape)
    place = to.tile(build, at, shape)
    if product.adds:
        start = build.widened(build.insert(LoadTileOp(place)), sums)
    else:
        start = build.constant(0, VectorType(sums, shape))
    loop = build.for_loop(0, product.count, 1, [start])
    inner = Builder.at_end(loop.body.block, build.location)
    number, total = loop.body.block.args
    left, right = _blocks(inner, product, number, at, shape)
    inner.add(scf.YieldOp(inner.insert(TileMmaOp(left, right, total))))
    build.add(StoreTileOp(build.narrowed(loop.results[0], to.element), place))


def _blocks(
    build: Builder, product: Batch, number: SSAValue, at: Values, shape: Sequence[int]
) -> tuple[SSAValue, SSAValue]:
    """Return the two factors of block ``number`` for the tile of C at ``at``."""
    (row, column), zero = at, build.index(0)
    _, *of_a = base.memref_type(product.a).get_shape()
    _, *of_b = base.memref_type(product.b).get_shape()
    a = Matrix(build, part(build, product.a, [number, 0, 0], [1, *of_a], 0))
    left = LoadTileOp(a.tile(build, [row, zero], [shape[0], of_a[1]]))
    start = [number, *[0] * len(of_b)]
    b = part(build, product.b, start, [1, *of_b], 0)
    depth, width = of_b[0], shape[1]
    if product.in_pairs:
        b, width = rows_of_pairs(build, b), PAIR * width
        column = build.index(build.times(column, PAIR))
    right = LoadTileOp(Matrix(build, b).tile(build, [zero, column], [depth, width]))
    # The computed factor first, so that the other load is next to the product.
    factor = _apart(build, build.insert(right), product)
    return build.insert(left), factor


def _apart(build: Builder, block: SSAValue, product: Batch) -> SSAValue:
    """Return a block of b as (k, n): a row of (k / 2, 2 n) holds two rows."""
    if not product.in_pairs:
        return block
    type_ = base.vector_type(block)
    (pairs, width), element = type_.get_shape(), type_.element_type
    columns = width // PAIR
    woven = VectorType(element, [pairs, columns, PAIR])
    three = build.insert(vector.ShapeCastOp(block, woven))
    rows = build.insert(vector.TransposeOp(three, [0, 2, 1]))
    flat = VectorType(element, [PAIR * pairs, columns])
    return build.insert(vector.ShapeCastOp(rows, flat))


# linalg.generic -----------------------------------------------------------------------


_KINDS = ["reduction", "parallel", "parallel", "reduction", "reduction"]
"""The iterators of batch, m, n, k and, for pairs, of the position in a pair."""


def _batch_maps(in_pairs: bool) -> list[AffineMap]:
    """Return the maps of ``c[m, n] += a[batch, m, k] * b[batch, k, n]``."""
    count = 5 if in_pairs else 4
    batch, m, n, k, *pair = (AffineExpr.dimension(dim) for dim in range(count))
    of_b = (batch, k // PAIR, n, *pair) if in_pairs else (batch, k, n)
    return [AffineMap(count, 0, one) for one in ((batch, m, k), of_b, (m, n))]


def _generic(b: Builder, op: linalg.GenericOp) -> Values:
    product = Batch(op.a, op.b, op.c, base.memref_type(op.a).get_shape()[0])
    maps = [each.data for each in op.indexing_maps if isinstance(each, AffineMapAttr)]
    kinds = [each.data for each in op.iterator_types if isinstance(each, StringAttr)]
    is_known = maps == _batch_maps(product.in_pairs) and kinds == _KINDS[: len(kinds)]
    if not is_known or not _adds_products(op):
        raise VerifyException("it is no batch-reduce product, (batch, m, k) by (k, n)")
    multiply(b, product)
    return []


def _adds_products(op: linalg.GenericOp) -> bool:
    """Whether the body computes ``out + a * b``."""
    block = op.body.block
    ops = [*block.ops]
    kinds = (arith.MulfOp, arith.AddfOp, linalg.YieldOp)
    if len(ops) != 3 or not all(map(isinstance, ops, kinds)):
        return False
    one, other, out = block.args
    product, total, end = ops
    return (
        {*product.operands} == {one, other}
        and {*total.operands} == {out, product.results[0]}
        and end.operands[0] is total.results[0]
    )


RULES: dict[type[Operation], Rule] = {linalg.GenericOp: _generic}


# vector.contract ----------------------------------------------------------------------


_CONTRACTED = ((0, 1, 3), (0, 3, 2), (1, 2))
"""The dimensions of (batch, m, n, k) that index each operand of a contraction."""


def legalize_contractions(op: Operation) -> None:
    """Replace contractions of whole batches; a LocatedVerifyException if wrong."""
    for each in base.operations_in(op, vector.ContractOp):
        # The only user of a contraction, if that is a write.
        users = [use.operation for use in each.result.uses]
        only = users[0] if len(users) == 1 else None
        write = only if isinstance(only, vector.TransferWriteOp) else None
        reads = [value.owner for value in each.operands]
        found = [o for o in reads if isinstance(o, vector.TransferReadOp)]
        if write is None or len(found) != 3 or not _is_batch(each, found, write):
            continue
        a, b, c = (read.base for read in found)
        try:
            count = base.memref_type(a).get_shape()[0]
            multiply(Builder.before(write), Batch(a, b, c, count))
        except VerifyException as error:
            raise LocatedVerifyException(each, str(error)) from None
        for dead in (write, each, *found):
            if not any(result.uses.get_length() for result in dead.results):
                Rewriter.erase_op(dead)


def _is_batch(
    op: vector.ContractOp,
    reads: Sequence[vector.TransferReadOp],
    write: vector.TransferWriteOp,
) -> bool:
    """Whether a contraction adds products of whole batches to the elements of C."""
    a, b, c = (read.base for read in reads)
    return (
        op.kind.kind == "add"
        and op.maps == _CONTRACTED
        and write.base is c
        and c not in (a, b)
        and all(map(_is_whole, [*reads, write]))
        and _is_quiet(reads, write)
    )


def _is_whole(op: vector.TransferReadOp | vector.TransferWriteOp) -> bool:
    """Whether a transfer reads or writes its whole memref without a permutation."""
    value = op.result if isinstance(op, vector.TransferReadOp) else op.value
    type_ = op.base.type
    return (
        base.is_memref(type_)
        and op.mask is None
        and type_.get_shape() == base.vector_type(value).get_shape()
        and all(base.constant_index(index) == 0 for index in op.indices)
        and op.permutation_map.data == AffineMap.identity(type_.get_num_dims())
    )


def _is_quiet(
    reads: Sequence[vector.TransferReadOp], write: vector.TransferWriteOp
) -> bool:
    """Whether no operation writes memory between the reads and the write."""
    block = write.parent
    if block is None or any(read.parent is not block for read in reads):
        return False
    ops = [*block.ops]
    first = min(ops.index(read) for read in reads)
    between = ops[first : ops.index(write)]
    quiet = (vector.TransferReadOp, vector.ContractOp)
    return all(isinstance(o, quiet) or o.name.startswith("arith.") for o in between)
