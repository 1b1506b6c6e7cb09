"""legalize-vectors: rewrite `vector` operations and views to the front end's forms.

Why: texts have vectors of any rank, transfers, contractions and views of views. A
backend supports tiles, operations on matrices, gathers by offsets and strided views.

* accesses.py: loads, stores and transfers become tiles if possible, else gathers and
  scatters; transfers.py says which transfer of a matrix can be a tile; reshaped memrefs
  become `memref.reinterpret_cast`
* shapes.py: reductions of any dimensions become those of rows or columns of a matrix;
  contractions become `tile_mma`, or a product for each matrix of a batch; transposes
  and broadcasts become those of matrices; masks by bounds become comparisons

Before: ``vector.multi_reduction <add>, %v, %a [0] : vector<4x8x16xf32> to ...``
After:  ``vector.shape_cast`` to ``vector<4x128xf32>``, ``xetile.tile_reduce <add>``

Left alone: other operations that move elements (extracts, inserts, shuffles, transposes
of three dimensions). Backends do these in registers or through memory.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xetl.ir.builder import Pass
from xetl.transforms.legalize_vectors import accesses, shapes
from xetl.transforms.rewriting import Rule, apply_rules

_RULES: dict[type[Operation], Rule] = {**accesses.RULES, **shapes.RULES}


class LegalizeVectorsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        if any(type(each) in _RULES for each in op.walk()):
            apply_rules(op, _RULES)
