"""expand-text-forms: operations that only MLIR text has become those of the front end.

Why: MLIR can express many things in several ways. The later passes know one way.
Operations that they do not know are refused here, by name and line.

Before: ``vector.multi_reduction <add>, %v, %a [1] : vector<8x16xf32> to vector<8xf32>``
After:  ``xetile.tile_reduce <add>, %v [1]``, ``vector.shape_cast``, ``arith.addf``

Left alone: kernels without the attribute `xetile.text`.

A program is one subgroup in its grid.  Shifts behave as in `reference` where MLIR
leaves the result undefined: too large an amount shifts all bits out.  Constant amounts
need no rewrite.
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatTF32Type,
    IndexType,
    ModuleOp,
)
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter

from xetl.analysis.axes import defined_by
from xetl.codegen.types import byte_width
from xetl.dialects.base import integer_width, is_vector, memref_type, operations_in
from xetl.dialects.kernel_attributes import LANES, SUBGROUPS, TEXT
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.text import cannot_run
from xetl.dialects.upstream import arith, gpu, memref, xegpu
from xetl.dialects.xetile import TileMmaOp
from xetl.ir.builder import Builder, Pass
from xetl.transforms.canonicalize.folding import integer_of
from xetl.transforms.diagnostics import remark
from xetl.transforms.normalize_tiles import split_tile_arrays
from xetl.transforms.rewriting import Rule, Values, apply_rules
from xetl.transforms.unblock_values import unblock, unblocked_tile
from xetl_cpu.lowering.expand_text_forms import blocks, parts, reducing, views
from xetl_cpu.lowering.expand_text_forms.scratch import replace_by

_SHARED_LIMIT = 1 << 20
_WIDTHS = (1, 8, 16, 32, 64)
_FLOATS = (Float16Type, BFloat16Type, Float32Type, Float64Type, FloatTF32Type)
_KNOWN = {
    "gpu": "block_id grid_dim thread_id block_dim subgroup_id num_subgroups barrier "
    "return",
    "scf": "for if while yield condition",
    "memref": "alloc alloca load store dim cast reinterpret_cast subview view "
    "transpose extract_strided_metadata extract_aligned_pointer_as_index atomic_rmw",
    "vector": "broadcast shape_cast step extract fma extract_strided_slice shuffle "
    "interleave",
    "cpu": "view_address constant_memory",
    "xegpu": "init_nbarrier nbarrier_arrive nbarrier_wait fence",
}


def refuse(kernel: Operation) -> None:
    """Check every operation of a kernel.

    Raises:
        IRError: an operation cannot be run.
    """
    shared = 0
    for op in kernel.walk():
        if op is kernel:
            continue
        reason = _reason(op)
        if reason is not None:
            raise cannot_run(op, "cpu", reason)
        if isinstance(op, memref.AllocOp | memref.AllocaOp):
            type_ = memref_type(op.results[0])
            if memory_space_of(type_) == 3:
                shared += byte_width(type_.element_type) * prod(type_.get_shape())
            if shared > _SHARED_LIMIT:
                problem = (
                    f"{shared} bytes of shared memory were asked for, "
                    f"{_SHARED_LIMIT} are allowed"
                )
                raise cannot_run(op, "cpu", problem)


def check_types(kernel: Operation) -> None:
    """Check the element types of all values of a kernel, before anything is rewritten.

    Raises:
        IRError: there is no code for an element type.
    """
    for op in kernel.walk():
        for value in defined_by(op):
            element = getattr(value.type, "element_type", value.type)
            if isinstance(element, AnyFloat) and not isinstance(element, _FLOATS):
                floats = "floats are f16, bf16, f32, f64 or tf32"
                raise cannot_run(op, "cpu", f"it works on {element}; {floats}", None)
            width = integer_width(element)
            if width is not None and width not in _WIDTHS:
                widths = "integers have 1, 8, 16, 32 or 64 bits"
                raise cannot_run(op, "cpu", f"it works on {element}; {widths}", None)


def _reason(op: Operation) -> str | None:
    """Return why an operation cannot be run; None if it can be run."""
    dialect, _, name = op.name.partition(".")
    known = (
        dialect in ("arith", "math", "xetile")
        or name in _KNOWN.get(dialect, "").split()
    )
    if not known:
        return "the operation is not known"
    return _special(op)


def _special(op: Operation) -> str | None:
    if isinstance(op, xegpu.NbarrierArriveOp | xegpu.NbarrierWaitOp):
        made = isinstance(op.nbarrier.owner, xegpu.InitNbarrierOp)
        return None if made else "the barrier must be made outside loops and branches"
    if isinstance(op, memref.AllocOp | memref.AllocaOp) and (
        any(extent < 0 for extent in memref_type(op.results[0]).get_shape())
    ):
        return "the memory must have a static shape"
    if isinstance(op, TileMmaOp) and op.is_of_codes:
        return "its operands are codes of 8-bit floats"
    return None


def _global_id(w: Builder, op: gpu.DimensionOp) -> Values:
    """``block_id * block_dim + thread_id``."""
    block, size, thread = (
        w.insert(cls.create(result_types=[IndexType()], properties=dict(op.properties)))
        for cls in (gpu.BlockIdOp, gpu.BlockDimOp, gpu.ThreadIdOp)
    )
    before = w.insert(arith.MuliOp(block, size))
    return [w.insert(arith.AddiOp(before, thread))]


def number(value: int) -> Rule:
    """Return a rule that replaces an operation by the constant ``value``."""
    return lambda w, op: [w.index(value)]


def _dropped(_: Builder, op: Operation) -> Values:
    """A rule that removes the operation."""
    return []


_SCALAR_RULES: dict[type[Operation], Rule] = {
    gpu.GlobalIdOp: _global_id,
    gpu.SubgroupSizeOp: number(LANES),
    gpu.LaneIdOp: number(0),
}
_ALONE: dict[type[Operation], Rule] = {
    gpu.ThreadIdOp: number(0),
    gpu.SubgroupIdOp: number(0),
    gpu.BlockDimOp: number(1),
    gpu.NumSubgroupsOp: number(1),
    xegpu.NbarrierArriveOp: _dropped,
    xegpu.NbarrierWaitOp: _dropped,
}
"""At workgroup level a program is one thread of control."""


# Shifts -------------------------------------------------------------------------------


_SHIFTS = (arith.ShliOp, arith.ShrsiOp, arith.ShruiOp)


def _bits(type_: Attribute) -> int:
    element = type_.element_type if is_vector(type_) else type_
    return integer_width(element) or 64


def _shift(op: Any) -> None:
    w, type_ = Builder.before(op), op.result.type
    most = w.constant(_bits(type_) - 1, type_)
    amount = w.insert(arith.MinuiOp(op.rhs, most))
    result = w.insert(type(op)(op.lhs, amount))
    if not isinstance(op, arith.ShrsiOp):
        too_far = w.insert(arith.CmpiOp("ugt", op.rhs, most))
        result = w.insert(arith.SelectOp(too_far, w.constant(0, type_), result))
    replace_by(op, result)


_RULES: dict[type[Operation], Rule] = {
    **_SCALAR_RULES,
    **views.RULES,
    **parts.RULES,
    **reducing.RULES,
}
_CACHE_HINTS = ("l1_hint", "l2_hint", "l3_hint")
_HINTS = ("xegpu.compile_hint", "xegpu.alloc_nbarrier")


class ExpandTextFormsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, gpu.FuncOp):
            _forget_cache_hints(kernel)
            if TEXT in kernel.attributes:
                check_types(kernel)
                _expand(kernel)
                refuse(kernel)


def _forget_cache_hints(kernel: gpu.FuncOp) -> None:
    for op in kernel.walk():
        found = [name for name in _CACHE_HINTS if name in op.properties]
        for name in found:
            del op.properties[name]
        if found:
            text = "hints are for GPUs: the processor decides by itself"
            remark(op, "caches", text)


def _expand(kernel: gpu.FuncOp) -> None:
    block = kernel.body.block
    views.back_to_origins(block)
    views.shared_memory(block)
    rules = _RULES
    if SUBGROUPS not in kernel.attributes:
        rules = {**rules, **_ALONE}
    reducing.as_f32(kernel)
    # Blocks that may be forgotten go first: the rules would see other values as
    # vectors.
    unblock(kernel, unblocked_tile)
    blocks.make_blocks(kernel)
    split_tile_arrays(list(kernel.walk()))
    apply_rules(kernel, rules)
    for op in list(kernel.body.walk()):
        unused = isinstance(op, xegpu.InitNbarrierOp) and not op.results[0].uses
        if unused or op.name in _HINTS:
            Rewriter.erase_op(op)
    # The last rewrite: the result of every shift is defined.
    for op in operations_in(block, *_SHIFTS):
        known = integer_of(op.rhs)
        if known is None or not 0 <= known < _bits(op.rhs.type):
            _shift(op)
