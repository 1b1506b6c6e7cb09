"""Reductions in groups; products of batches, of tf32, and with unusual sums.

In memory and in registers a tf32 is an f32; products use 10 bits of its fraction. A
value is rounded to tf32 by `arith.truncf`, and when a product reads it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, FloatTF32Type, VectorType, f32, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import (
    element_type,
    is_tf32,
    is_vector,
    vector_type,
    with_element,
)
from xetl.dialects.upstream import arith, gpu, scf, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.xetile import TileMmaOp, TileReduceOp
from xetl.dialects.xetile.value_ops import accumulator_type
from xetl.ir.builder import Builder
from xetl.transforms.exchange import spread
from xetl.transforms.legalize_vectors.shapes import cast, reduced
from xetl.transforms.rewriting import Rule, Values, retype, retyping
from xetl_cpu.lowering.expand_text_forms import scratch
from xetl_cpu.lowering.expand_text_forms.scratch import Place, replace_by


def _tile_reduce(w: Builder, op: TileReduceOp) -> Values | None:
    """Lower groups of ``reduction_size``: add a dimension for them and reduce it."""
    if op.reduction_size is None:
        return None
    size, value = op.reduction_size.value.data, op.source
    for dim in op.dims:
        shape = vector_type(value).get_shape()
        groups = shape[dim] // size
        wide = cast(w, value, (*shape[:dim], groups, size, *shape[dim + 1 :]))
        value = reduced(w, wide, op.kind.data, [dim + 1])
        value = cast(w, value, (*shape[:dim], groups, *shape[dim + 1 :]))
    return [value]


def _multi_reduction(w: Builder, op: vector.MultiReductionOp) -> Values:
    """Reduce over the first dimension: each matrix becomes a row."""
    count, rows, columns = vector_type(op.source).get_shape()
    matrix = cast(w, op.source, (count, rows * columns))
    found = w.insert(TileReduceOp(matrix, op.kind.kind, [0]))
    return [cast(w, found, (rows, columns))]


# Products ---------------------------------------------------------------------------


def _contract(w: Builder, op: vector.ContractOp) -> Values:
    """Compute ``a @ b + c`` for each matrix of a batch, in a loop."""
    operands = (op.lhs, op.rhs, op.acc)
    batch, m, n = vector_type(op.acc).get_shape()
    shapes = [vector_type(value).get_shape()[1:] for value in operands]
    memories = [scratch.spill(w, value) for value in operands]
    target = scratch.allocate(w, batch * m * n, vector_type(op.acc).element_type)
    inner, number = w.repeat(0, batch, 1)
    values: list[SSAValue] = []
    for memory, (rows, columns) in zip(memories, shapes):
        offset = inner.times(number, rows * columns)
        place = Place(memory, offset, (columns, 1))
        values.append(scratch.read(inner, place, (rows, columns)))
    place = Place(target, inner.times(number, m * n), (n, 1))
    scratch.write(inner, inner.insert(TileMmaOp(*values)), place)
    return [scratch.fill(w, target, (batch, m, n))]


def _tile_mma(w: Builder, op: TileMmaOp) -> Values | None:
    """Rewrite a product whose sums have another type than those of a micro-kernel.

    Floats are computed in the wider type of both, and rounded once.
    """
    factor, to = element_type(op.a.type), element_type(op.result.type)
    if not isinstance(to, AnyFloat):
        return None if (factor, to) == (i8, i32) else [_sum_of_products(w, op, to)]
    sums = accumulator_type(factor)
    if to == sums or not isinstance(sums, AnyFloat):
        return None
    operands = list(op.operands)
    if to.bitwidth > sums.bitwidth:
        sums = to
        operands[:2] = [w.widened(each, sums) for each in operands[:2]]
    operands[2:] = [w.widened(each, sums) for each in operands[2:]]
    total = TileMmaOp.create(
        operands=operands,
        result_types=[with_element(op.result.type, sums)],
        properties=dict(op.properties),
    )
    return [w.narrowed(w.insert(total), to)]


def _sum_of_products(w: Builder, op: TileMmaOp, to: Attribute) -> SSAValue:
    """Add products of a column of a and a row of b, modulo the width of the result."""
    shape, depth = op.result.type.get_shape(), vector_type(op.b).get_shape()[0]
    flags = (op.a_unsigned, op.b_unsigned)
    factors = [_as_integers(w, *each, to) for each in zip((op.a, op.b), flags)]
    a, b = (scratch.spill(w, each) for each in factors)
    start = w.constant(0, op.result.type) if op.c is None else op.c
    loop = w.for_loop(0, depth, 1, [start])
    k, total = loop.body.block.args
    inner = Builder.at_end(loop.body.block, op.location)
    column = scratch.read(inner, Place(a, k, (depth, 1)), (shape[0], 1))
    row = Place(b, inner.times(k, shape[1]), (shape[1], 1))
    sides = (column, scratch.read(inner, row, (1, shape[1])))
    product = inner.insert(arith.MuliOp(*(spread(inner, x, shape) for x in sides)))
    inner.add(scf.YieldOp(inner.insert(arith.AddiOp(total, product))))
    return loop.results[0]


def _as_integers(
    w: Builder, value: SSAValue, unsigned: Attribute | None, to: Attribute
) -> SSAValue:
    """Extend or truncate integers."""
    type_, old = with_element(value.type, to), bit_width(element_type(value.type))
    if type_ == value.type:
        return value
    extend = arith.ExtsiOp if unsigned is None else arith.ExtuiOp
    return w.insert((extend if old < bit_width(to) else arith.TrunciOp)(value, type_))


RULES: dict[type[Operation], Rule] = {
    vector.MultiReductionOp: _multi_reduction,
    vector.ContractOp: _contract,
    TileReduceOp: _tile_reduce,
    TileMmaOp: _tile_mma,
}


_DROPPED = 13
"""Bits of the fraction of an f32 that a tf32 lacks."""


def as_f32(kernel: gpu.FuncOp) -> None:
    """Rewrite a kernel so that no tf32 is left."""
    operations = list(kernel.walk())
    products = [o for o in operations if isinstance(o, TileMmaOp) and is_tf32(o.a.type)]
    truncations = (o for o in operations if isinstance(o, arith.TruncfOp))
    casts = [o for o in truncations if is_tf32(o.result.type)]
    to_f32 = retyping(_as_f32)
    for op in operations:
        retype(op, to_f32)
    for op in products:
        w = Builder.before(op)
        for number in (0, 1):
            op.operands[number] = _rounded(w, op.operands[number])
    for op in casts:
        w, source = Builder.before(op), op.operands[0]
        if element_type(source.type) != f32:
            source = w.insert(arith.TruncfOp(source, op.results[0].type))
        replace_by(op, _rounded(w, source))
    for op in operations:
        if isinstance(op, arith.ExtfOp) and op.operands[0].type == op.result.type:
            replace_by(op, op.operands[0])


def _as_f32(attribute: Attribute) -> Attribute | None:
    """Return f32 for tf32; constants keep their bytes, because both have 32 bits."""
    return f32 if isinstance(attribute, FloatTF32Type) else None


def _rounded(w: Builder, value: SSAValue) -> SSAValue:
    """Round to the nearest tf32, ties to even, by bits; keep infinities and NaN."""
    type_ = value.type
    bits = VectorType(i32, type_.get_shape()) if is_vector(type_) else i32

    def number(each: int) -> SSAValue:
        return w.constant(each, bits)

    raw = w.insert(arith.BitcastOp(value, bits))
    odd = w.insert(arith.ShruiOp(raw, number(_DROPPED)))
    odd = w.insert(arith.AndiOp(odd, number(1)))
    half = number((1 << (_DROPPED - 1)) - 1)
    up = w.insert(arith.AddiOp(raw, w.insert(arith.AddiOp(odd, half))))
    cut = w.insert(arith.AndiOp(up, number(-(1 << _DROPPED))))
    special = number(0x7F800000)
    exponent = w.insert(arith.AndiOp(raw, special))
    finite = w.insert(arith.CmpiOp("ne", exponent, special))
    chosen = w.insert(arith.SelectOp(finite, cut, raw))
    return w.insert(arith.BitcastOp(chosen, type_))
