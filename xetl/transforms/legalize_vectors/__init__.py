"""legalize-vectors: operations of `vector` and views become the front end's forms.

Why: texts have vectors of any rank, transfers, contractions and views of views.  A
backend sees tiles, operations on matrices, gathers by offsets and strided views.

* accesses.py: loads, stores and transfers: tiles where a tile is like them, else
  gathers and scatters; transfers.py says which transfer of a matrix is like a tile;
  reshaped memrefs are `memref.reinterpret_cast`
* reductions.py: reductions of any dimensions are those of rows or columns of a matrix;
  contractions are `tile_mma`, or a product for each of a batch
* shapes.py: transposes and broadcasts of matrices; masks by bounds are comparisons

Before: ``vector.multi_reduction <add>, %v, %a [0] : vector<4x8x16xf32> to ...``
After:  ``vector.shape_cast`` to ``vector<4x128xf32>``, ``xetile.tile_reduce <add>``

Left alone: what puts elements elsewhere in no such way (extracts, inserts, shuffles,
transposes of three dimensions): backends do it in registers or through memory.
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
