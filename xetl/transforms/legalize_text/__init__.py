"""legalize-text: operations that others express become those.

Why: texts may have any operation of MLIR; each that is a short word for others would
otherwise be one more case in every backend.  Loops in any order, switches and regions
that run once become `scf.for` and `scf.if` (control.py); `index` becomes `arith`;
products, copies and fills of `linalg` become loops over tiles (products.py).

Before: ``math.isnan %v``, ``affine.apply affine_map<(d0) -> (d0 * 4)>(%i)``
After:  ``arith.cmpf uno, %v, %v``, ``arith.muli %i, %c4``

Left alone: everything else.  What a rule cannot express (an outer product that is not
added, a global that is no constant) is an error with its line.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xetl.dialects.upstream.memref import GlobalOp
from xetl.transforms.legalize_text import indices, memory, numbers, products, vectors
from xetl.transforms.legalize_text.control import legalize_control_flow
from xetl.transforms.rewriting import Rule, apply_rules

_RULES: dict[type[Operation], Rule] = {
    **indices.RULES,
    **memory.RULES,
    **numbers.RULES,
    **products.RULES,
    **vectors.RULES,
}


class LegalizeTextPass(ModulePass):
    """See the module docstring."""

    name = "legalize-text"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        legalize_control_flow(op)
        apply_rules(op, _RULES)
        for unread in [each for each in op.walk() if isinstance(each, GlobalOp)]:
            unread.detach()
            unread.erase()
