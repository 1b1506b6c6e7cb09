"""expand-text-forms: what only texts have becomes what the front end makes.

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

from xetl.dialects.launch_form import SUBGROUPS, TEXT
from xetl.dialects.upstream import gpu
from xetl.dialects.xetile import TileType
from xetl_cpu.lowering.text_forms import memory, scalars, vectors
from xetl_cpu.lowering.text_forms.refusing import refuse

_RULES: dict[type[Operation], Callable[[Any], None]] = {
    **scalars.RULES,
    **memory.RULES,
    **vectors.RULES,
}
_HINTS = ("xegpu.compile_hint", "xegpu.alloc_nbarrier")


class ExpandTextFormsPass(ModulePass):
    """See the module docstring."""

    name = "expand-text-forms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the kernels of the module in place."""
        for kernel in [o for o in op.walk() if isinstance(o, gpu.FuncOp)]:
            if TEXT in kernel.attributes:
                _expand(kernel)
                refuse(kernel)


def _expand(kernel: gpu.FuncOp) -> None:
    memory.shared_memory(kernel.body.block)
    rules = _RULES
    if SUBGROUPS not in kernel.attributes:
        rules = {**rules, **scalars.ALONE}
    for _ in range(2):  # the rules make some operations that have rules
        for op in list(kernel.body.walk()):
            rule = rules.get(type(op))
            if rule is not None:
                rule(op)
            elif op.name in _HINTS:
                op.detach()
                op.erase()
    for op in kernel.body.walk():
        arguments = [a for r in op.regions for b in r.blocks for a in b.args]
        for value in (*op.results, *arguments):
            type_ = value.type
            if isinstance(type_, TileType) and type_.array_length > 1:
                Rewriter.replace_value_with_new_type(value, memory.of_one_vector(type_))
