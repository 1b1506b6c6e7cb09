"""convert-xsmm-to-calls: ``xsmm`` operations become calls of C functions.

    %k = xsmm.brgemm.dispatch [32, ...] flags = (vnni_b) data_type = bf16
    xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %n)
    ->
    %k = func.call @xsmm_brgemm_dispatch(%bf16, %m, ..., %flags)
    func.call @xsmm_brgemm_invoke(%bf16, %k, %a_ptr, %a_offset, ..., %n)

A memref is passed as its pointer (``llvm.ptr``) and its offset in elements.  Numbers
are i64. Source: seed 003, "Lowering XSMM operations"; the argument lists are those of
the C functions ``xsmm_*`` (native/xsmm.h).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FunctionType, ModuleOp, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects import xsmm
from xetl.dialects.upstream import arith, func, memref
from xetl.dialects.upstream.llvm import IntToPtrOp
from xetl.ir.builder import Builder, Pass
from xetl_cpu.dialect import ThreadTilesOp


class ConvertXsmmToCallsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        calls = _Calls()
        for one in list(op.walk()):
            if isinstance(one, xsmm.DispatchOp):
                if one.kernel.uses:
                    calls.dispatch(one)
                else:  # of a product that is one of the library's now
                    Rewriter.erase_op(one)
            elif isinstance(one, xsmm.BrgemmOp):
                calls.invoke(one)
            elif isinstance(one, xsmm.TileConfigOp):
                calls.configure(one)
            elif isinstance(one, ThreadTilesOp):
                # Its kernels are now those of the library; `emit/parallel.py` calls
                # them.
                one.properties["library"] = UnitAttr()
        first = op.body.block.first_op
        declared = list(calls.declarations.values())
        if first is not None and declared:
            op.body.block.insert_ops_before(declared, first)


_DISPATCHES: dict[type[xsmm.DispatchOp], str] = {
    xsmm.BrgemmDispatchOp: "xsmm_brgemm_dispatch",
    xsmm.TileConfigDispatchOp: "xsmm_intel_amx_tile_config_dispatch",
}


class _Calls:
    """Replaces operations by calls, and keeps declarations of the functions."""

    def __init__(self) -> None:
        self.declarations: dict[str, func.FuncOp] = {}

    def dispatch(self, op: xsmm.DispatchOp) -> None:
        build = Builder.before(op)
        flags = xsmm.gemm_flags_in_calls(op.flag_names())
        numbers = xsmm.DATA_TYPES[op.data_type.data], *op.size_list(), flags
        arguments = [build.constant(value, i64) for value in numbers]
        call = self._call(op, build, _DISPATCHES[type(op)], arguments, [i64])
        call.results[0].name_hint = op.kernel.name_hint
        op.kernel.replace_all_uses_with(call.results[0])
        Rewriter.erase_op(op)

    def invoke(self, op: xsmm.BrgemmOp) -> None:
        build = Builder.before(op)
        arguments = [build.constant(xsmm.DATA_TYPES[op.data_type.data], i64), op.kernel]
        for value in (op.a, op.b, op.c):
            arguments += _pointer(build, value)
        arguments.append(op.batch)
        self._call(op, build, "xsmm_brgemm_invoke", arguments, [])
        Rewriter.erase_op(op)

    def configure(self, op: xsmm.TileConfigOp) -> None:
        build = Builder.before(op)
        type_ = build.constant(xsmm.DATA_TYPES["bf16"], i64)
        pointer, _ = _pointer(build, op.state)
        arguments = [type_, op.kernel, pointer, build.index(0)]
        name = "xsmm_intel_amx_tile_config_invoke"
        self._call(op, build, name, arguments, [])
        Rewriter.erase_op(op)

    def _call(
        self,
        op: Operation,
        build: Builder,
        name: str,
        arguments: Sequence[SSAValue],
        results: Sequence[Attribute],
    ) -> func.CallOp:
        call = func.CallOp(arguments, results, name)
        call.location = op.location
        build.add(call)
        types = FunctionType.from_lists([value.type for value in arguments], results)
        if name not in self.declarations:
            self.declarations[name] = func.FuncOp(name, types, visibility="private")
        return call


def _pointer(build: Builder, value: SSAValue) -> list[SSAValue]:
    """Return the pointer to a memref's buffer, and the memref's offset in it."""
    metadata = memref.ExtractStridedMetadataOp(value)
    build.add(metadata)
    address = build.insert(memref.ExtractAlignedPointerAsIndexOp(value))
    number_ = build.insert(arith.IndexCastOp(address, i64))
    return [build.insert(IntToPtrOp(number_)), metadata.results[1]]
