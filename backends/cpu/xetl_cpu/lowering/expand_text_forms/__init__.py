"""expand-text-forms: forms that only texts use become those of the front end.

Why: MLIR says many things in several ways. The passes behind this one know one way,
and what they do not know is refused here, by name and line.

Before: ``vector.multi_reduction <add>, %v, %a [1] : vector<8x16xf32> to vector<8xf32>``
After:  ``xetile.tile_reduce <add>, %v [1]``, ``vector.shape_cast``, ``arith.addf``

Left alone: kernels without the attribute `xetile.text`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from xetl.dialects.kernel_attributes import SUBGROUPS, TEXT
from xetl.dialects.upstream import gpu
from xetl.dialects.walk import operations_in
from xetl.transforms.diagnostics import remark
from xetl.transforms.normalize_tiles import split_tile_arrays
from xetl.transforms.unblock_values import unblock, unblocked_tile
from xetl_cpu.lowering.expand_text_forms import blocks, parts, reducing, scalars, views
from xetl_cpu.lowering.expand_text_forms.refusing import check_types, refuse

_RULES: dict[type[Operation], Callable[[Any], None]] = {
    **scalars.RULES,
    **views.RULES,
    **parts.RULES,
    **reducing.RULES,
}
_CACHE_HINTS = ("l1_hint", "l2_hint", "l3_hint")
_HINTS = ("xegpu.compile_hint", "xegpu.alloc_nbarrier")


class ExpandTextFormsPass(ModulePass):
    """See the module docstring."""

    name = "expand-text-forms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the kernels of the module in place."""
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
        rules = {**rules, **scalars.ALONE}
    reducing.as_f32(kernel)
    # What may be forgotten goes first: the rules would take the rest for vectors.
    unblock(kernel, unblocked_tile)
    blocks.make_blocks(kernel)
    split_tile_arrays(list(kernel.walk()))
    while _apply(kernel, rules):  # the rules make operations that have rules
        pass
    scalars.make_total(block)


def _apply(
    kernel: gpu.FuncOp, rules: dict[type[Operation], Callable[[Any], None]]
) -> bool:
    """Apply each rule once; tells whether an operation was replaced."""
    changed = False
    for op in list(kernel.body.walk()):
        rule = rules.get(type(op))
        if not _stands(op):
            continue
        if rule is not None:
            rule(op)
            changed |= not _stands(op)
        elif op.name in _HINTS:
            Rewriter.erase_op(op)
    return changed


def _stands(op: Operation) -> bool:
    """Whether an operation is still in the kernel."""
    return op.parent is not None
