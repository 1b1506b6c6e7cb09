"""A batch-reduce `linalg.generic` on memrefs as a dispatched ``xsmm.brgemm``.

Two forms are known, with B as it lies or in pairs of k (VNNI)::

    C[m, n] += A[b, m, k] * B[b, k, n]                    f32, flags = (none)
    C[m, n] += A[b, m, k] * B[b, k floordiv 2, n, v]      bf16, flags = (vnni_b)

All sizes and strides must be in the types.  The second form is tpp-mlir's: what is
meant is a sum over k alone, ``v`` being ``k mod 2``, though a reader who lets ``v``
run on its own would add every product with both halves of a pair.

Source: seed 003, "Lowering to XSMM dialect".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from xetl.dialects.base import memref_type
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.memref_layout import has_static_layout, strides_of
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder
from xetl.transforms.remarks import remark
from xetl_cpu.xsmm import BrgemmDispatchOp, BrgemmOp

GENERIC = "linalg.generic"


def raise_generic(op: Operation) -> None:
    """Replace a `linalg.generic`, or remark why it stays."""
    try:
        product = _match(op)
    except _NotRaisedError as reason:
        remark(op, "brgemm", f"the linalg.generic stays: {reason}")
        return
    build = Builder.before(op)
    batch = arith.ConstantOp(IntegerAttr(product.batch, i64), i64)
    kernel = BrgemmDispatchOp(
        sizes=product.sizes, data_type=product.data_type, flags=[product.flag]
    )
    build.add(batch)
    build.add(kernel)
    operands = [*op.operands, batch.result]
    call = BrgemmOp(kernel.kernel, operands, data_type=product.data_type)
    build.add(call)
    for one in (batch, kernel, call):
        one.location = op.location
    op.detach()
    op.erase()


class _NotRaisedError(Exception):
    """Why an operation is no batch-reduce product."""


@dataclass(frozen=True)
class _Product:
    """What is dispatched: m, n, k, then leading dimensions and strides of a batch."""

    sizes: tuple[int, ...]
    batch: int
    data_type: str
    flag: str


def _match(op: Operation) -> _Product:
    """What the operation computes.

    Raises:
        _NotRaisedError: that is no product of the two forms, or not of known strides.
    """
    if len(op.operands) != 3 or op.results:
        raise _NotRaisedError("it does not take two memrefs and add to a third")
    types = [value.type for value in op.operands]
    if not all(is_memref(type_) and has_static_layout(type_) for type_ in types):
        raise _NotRaisedError("a shape or stride is not known from its type")
    if not _multiplies_and_adds(op.regions[0]):
        raise _NotRaisedError("its body is not one product that is added")
    is_vnni = _is_vnni(op)
    elements = {str(memref_type(value).element_type) for value in op.operands}
    data_type = "bf16" if is_vnni else "f32"
    if elements != {data_type}:
        found = ", ".join(sorted(elements))
        raise _NotRaisedError(f"its form is that of {data_type}, its types are {found}")
    a, b, c = op.operands
    return _product(a, b, c, is_vnni)


def _product(a: SSAValue, b: SSAValue, c: SSAValue, is_vnni: bool) -> _Product:
    batch, m, k = memref_type(a).get_shape()
    m_of_c, n = memref_type(c).get_shape()
    wanted = (batch, k // 2, n, 2) if is_vnni else (batch, k, n)
    if memref_type(b).get_shape() != wanted or m_of_c != m or (is_vnni and k % 2):
        raise _NotRaisedError("the shapes of its operands do not agree")
    stride_a, lda, unit_a = _strides(a)
    stride_b, ldb, *inner = _strides(b)
    ldc, unit_c = _strides(c)
    if (unit_a, unit_c, inner) != (1, 1, [2, 1] if is_vnni else [1]):
        raise _NotRaisedError("the rows of an operand are not contiguous")
    if is_vnni and ldb % 2:
        raise _NotRaisedError("the pairs of B are torn apart")
    ldb = ldb // 2 if is_vnni else ldb
    sizes = (m, n, k, lda, ldb, ldc, stride_a, stride_b)
    names = ("bf16", "vnni_b") if is_vnni else ("f32", "none")
    return _Product(sizes, batch, *names)


def _strides(value: SSAValue) -> list[int]:
    found = strides_of(memref_type(value)) or []
    return [stride for stride in found if stride is not None]


def _is_vnni(op: Operation) -> bool:
    """Which of the two forms the maps have.

    Raises:
        _NotRaisedError: neither.
    """
    maps: Any = op.properties["indexing_maps"]
    a, b, c = (one.data for one in maps.data)
    if len(a.results) != 3 or not _is_permutation_of_dims(a):
        raise _NotRaisedError("A is not indexed by batch, m and k")
    batch, m, k = a.results
    n = c.results[1] if len(c.results) == 2 else None
    known = {_position(one) for one in (batch, m, k, n)}
    rest = [AffineDimExpr(d) for d in range(a.num_dims) if d not in known]
    kinds: Any = op.properties["iterator_types"]
    parallel = {d for d, kind in enumerate(kinds.data) if "parallel" in str(kind.data)}
    if n is None or c.results[0] != m or parallel != {_position(m), _position(n)}:
        raise _NotRaisedError("C is not indexed by m and n, the parallel loops")
    if not rest and b.results == (batch, k, n):
        return False
    if len(rest) == 1 and b.results == (batch, k // 2, n, rest[0]):
        return True
    raise _NotRaisedError("B is not indexed by batch, k and n, or pairs of k")


def _is_permutation_of_dims(map_: AffineMap) -> bool:
    positions = [_position(one) for one in map_.results]
    return None not in positions and len(set(positions)) == len(positions)


def _position(one: AffineExpr | None) -> int | None:
    return one.position if isinstance(one, AffineDimExpr) else None


def _multiplies_and_adds(body: Region) -> bool:
    """``yield (c + a * b)``, operands in any order."""
    ops, (a, b, c) = list(body.block.ops), body.block.args
    if [one.name for one in ops] != ["arith.mulf", "arith.addf", "linalg.yield"]:
        return False
    product, total, end = ops
    return (
        set(product.operands) == {a, b}
        and set(total.operands) == {c, product.results[0]}
        and list(end.operands) == [total.results[0]]
    )
