"""convert-block-gemm-to-brgemm: block GEMMs become dispatched products of a library.

    xsmm.block_gemm(%a, ..., %rows, %k, %b, %start, %panel_stride, %panels, %c)
    ->
    %batch = %k / 32
    scf.for %p = 0 to %panels {
      %kernel = xsmm.brgemm.dispatch [rows, nr, 32, lda, nr, ldc, 32, 32 * nr] ...
      xsmm.brgemm(%kernel, %a as (batch, rows, 32), panel %p as (batch, 32, nr),
                  columns of %c, %batch)
    }

A panel is already a batch of consecutive blocks of B. A was packed, so its rows are a
fixed distance apart. Both are padded with zeros to a multiple of 32 along k.

Before: stage ``loops``, for a target with ``calls``.  Left alone, and compiled inline:
f64 and bytes, products that the library has no kernel for, and products in fibers: the
stacks of fibers are as small as our own code needs.  Source: seed 003.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, NoneAttr, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import Index, around, known, memref_type, operations_in
from xetl.dialects.upstream import arith, memref
from xetl.dialects.xsmm import BrgemmDispatchOp, BrgemmOp
from xetl.errors import LibraryWarning
from xetl.ir.builder import Builder, Pass
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BlockGemmOp, FibersOp
from xetl_cpu.library.serve import brgemm_numbers, find_library
from xetl_cpu.lowering.loops.state import static_strides
from xetl_cpu.microkernels.blocking import CALLED_K, Blocking
from xetl_cpu.targets import INLINE, Target, find_target

_PAIR = 2
"""Consecutive k that are adjacent in a panel of bf16."""


@dataclass(frozen=True)
class ConvertBlockGemmToBrgemmPass(Pass):
    target: str = "host+recording"

    def rewrite(self, op: ModuleOp) -> None:
        target = find_target(self.target)
        if target.calls == INLINE:
            return
        for one in operations_in(op, BlockGemmOp):
            blocking = one.blocking()
            reason = _why_inline(one, blocking)
            if reason is not None:
                remark(one, "brgemm", f"compiled inline: {reason}")
                continue
            dispatch = _dispatch(one, blocking)
            if _has_kernel(one, dispatch, target):
                _replace(one, blocking, dispatch)


def _why_inline(op: BlockGemmOp, blocking: Blocking) -> str | None:
    if not blocking.is_called:
        return f"no library is called for {blocking.dtype}"
    waits = any(around(op, FibersOp))
    return "subgroups that wait have small stacks" if waits else None


def _dispatch(op: BlockGemmOp, blocking: Blocking) -> BrgemmDispatchOp:
    lda, _ = _strides(op.a)
    nr = blocking.nr
    sizes = (blocking.rows_padded, nr, CALLED_K, lda, nr, blocking.ldc)
    strides = (CALLED_K, CALLED_K * nr)
    data_type, flag = ("bf16_f32", "vnni_b") if _in_pairs(blocking) else ("f32", "none")
    return BrgemmDispatchOp(sizes=(*sizes, *strides), data_type=data_type, flags=[flag])


def _in_pairs(blocking: Blocking) -> bool:
    return blocking.k_pack == _PAIR


def _strides(value: SSAValue) -> list[int]:
    """Return the strides of a packed operand or of scratch: their shapes are static."""
    return [step or 0 for step in static_strides(memref_type(value))]


def _has_kernel(op: BlockGemmOp, dispatch: BrgemmDispatchOp, target: Target) -> bool:
    """Whether the library has the kernel; a launch could not switch to inline code."""
    sizes, data_type = dispatch.size_list(), dispatch.data_type.data
    numbers = brgemm_numbers(data_type, sizes, dispatch.flag_names())
    if find_library(target.calls).has_kernel(numbers):
        remark(op, "brgemm", f"the products are calls of {target.calls}")
        return True
    text = f"compiled inline: {target.calls} has no kernel for {data_type} {[*sizes]}"
    remark(op, "brgemm", text)
    warnings.warn(f"a product is {text}", LibraryWarning, stacklevel=2)
    return False


def _replace(op: BlockGemmOp, blocking: Blocking, dispatch: BrgemmDispatchOp) -> None:
    build = Builder.before(op)
    count = build.insert(arith.DivuiOp(op.k, build.index(CALLED_K)))
    batch = build.insert(arith.IndexCastOp(count, i64))
    lda, _ = _strides(op.a)
    rows, nr = blocking.rows_padded, blocking.nr
    m0, k0 = (known(value) for value in (op.m0, op.k0))
    start = build.plus(build.times(m0, lda), k0)
    a = _view(build, op.a, start, (count, rows, CALLED_K), (CALLED_K, lda, 1))
    inner, panel = build.repeat(0, op.panels, 1)
    at = inner.plus(op.b_offset, inner.times(panel, op.panel_stride))
    b = _panel(inner, op.b, at, count, blocking)
    column = inner.times(panel, nr)
    c = _view(inner, op.c, column, (rows, nr), (blocking.ldc, 1))
    inner.add(dispatch)
    kernel, data_type = dispatch.kernel, dispatch.data_type
    inner.add(BrgemmOp(kernel, a, b, c, batch, data_type=data_type))
    Rewriter.erase_op(op)


def _panel(
    build: Builder, b: SSAValue, at: Index, count: SSAValue, blocking: Blocking
) -> SSAValue:
    """Return the blocks of a panel: (batch, k, n), or (batch, k / 2, n, 2) in pairs."""
    nr = blocking.nr
    if not _in_pairs(blocking):
        shape, strides = (count, CALLED_K, nr), (CALLED_K * nr, nr, 1)
        return _view(build, b, at, shape, strides)
    pairs = (count, CALLED_K // _PAIR, nr, _PAIR)
    return _view(build, b, at, pairs, (CALLED_K * nr, _PAIR * nr, _PAIR, 1))


def _view(
    build: Builder,
    base: SSAValue,
    offset: Index,
    sizes: tuple[Index, ...],
    strides: tuple[int, ...],
) -> SSAValue:
    """Return a view of memory whose memref starts where its allocation starts."""
    how = offset, sizes, strides
    return build.insert(memref.ReinterpretCastOp.of(base, *how, NoneAttr()))
