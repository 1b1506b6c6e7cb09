"""Emit the packers: B into zero-padded panels, A into rows of the compute type."""

from typing import Literal

from xetl_cpu.llvm import (
    I64,
    PTR,
    VOID,
    Function,
    Module,
    const,
    counted_loop,
    define,
    ir,
    offset,
)
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.microkernels.copying import CopyKind, emit_block_copy
from xetl_cpu.microkernels.elements import bits_of
from xetl_cpu.targets import Target

__all__ = ["emit_pack_a", "emit_pack_b"]


def emit_pack_b(
    module: Module,
    target: Target,
    blocking: Blocking,
    src_dtype: str,
    unit: Literal["k", "n"] | None = None,
) -> Function:
    """Get or create the packer of B.

    ``void(src, stride_k, stride_n, k_valid, k, n_valid, panels, dst, panel_stride)``
    packs k x (panels * nr) elements; those from ``k_valid`` or ``n_valid`` on are
    zero, and so is k up to a multiple of ``k_pack``.  Strides are in elements of
    ``src_dtype`` (any; 1 is fast, in either), ``panel_stride`` in compute elements.
    ``dst`` is where panel 0 has the first k to be packed: k may be done in parts, cut
    at multiples of ``k_pack``.

    If it is known which stride is 1, say so by ``unit``: less is compiled then, and
    that stride is not looked at.
    """
    kind = CopyKind(
        src_dtype,
        blocking.compute,
        blocking.k_pack,
        blocking.nr,
        None if unit is None else "major" if unit == "k" else "minor",
    )
    name = f"xetl_pack_b_{target.name}_{kind.name}_{unit or 'any'}"
    known = module.globals.get(name)
    if known is not None:
        return known
    copy = emit_block_copy(module, target, kind)
    labels = ("stride_k", "stride_n", "k_valid", "k", "n_valid", "panels")
    params = [("src", PTR), *((label, I64) for label in labels)]
    params += [("dst", PTR), ("panel_stride", I64)]
    function = define(module, name, VOID, params)
    src, stride_k, stride_n, k_valid, k, n_valid, panels, dst, stride = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    nr = const(I64, blocking.nr)
    with counted_loop(builder, panels, name="panel") as panel:
        column = builder.mul(panel.index, nr)
        at = builder.mul(column, stride_n)
        from_ = offset(builder, src, bits_of(src_dtype), at)
        left = builder.sub(n_valid, column)
        at = builder.mul(panel.index, stride)
        to = offset(builder, dst, bits_of(blocking.compute), at)
        builder.call(copy, [from_, stride_k, stride_n, k_valid, left, k, nr, to, nr])
    builder.ret_void()
    return function


def emit_pack_a(
    module: Module,
    target: Target,
    blocking: Blocking,
    src_dtype: str,
    unit: Literal["m", "k"] | None = None,
) -> Function:
    """Get or create the packer of A.

    ``void(src, stride_m, stride_k, rows_valid, k_valid, rows, k, dst, ldd)`` copies to
    rows of k compute elements, ``ldd`` apart; zero from ``rows_valid`` or ``k_valid``
    on.  Nothing past column k is written.  Strides and ``unit`` as for ``emit_pack_b``.
    """
    kind = CopyKind(
        src_dtype,
        blocking.compute,
        1,
        0,
        None if unit is None else "major" if unit == "m" else "minor",
    )
    name = f"xetl_pack_a_{target.name}_{kind.name}_{unit or 'any'}"
    known = module.globals.get(name)
    if known is not None:
        return known
    copy = emit_block_copy(module, target, kind)
    labels = ("stride_m", "stride_k", "rows_valid", "k_valid", "rows", "k")
    params = [("src", PTR), *((label, I64) for label in labels)]
    params += [("dst", PTR), ("ldd", I64)]
    function = define(module, name, VOID, params)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    builder.call(copy, list(function.args))
    builder.ret_void()
    return function
