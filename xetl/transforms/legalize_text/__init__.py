"""legalize-text: rewrite operations that simpler operations can express.

Why: texts may have any operation of MLIR; each that is a short word for others would
otherwise be one more case in every backend.  Loops in any order, switches and regions
that run once become `scf.for` and `scf.if` (control.py); `index` becomes `arith`
(numbers.py); products, copies and fills of `linalg` (products.py, batches.py) and calls
of micro-kernels (micro_kernels.py) become loops over tiles; a constant of the module
becomes memory of the program, filled at the start.

Before: ``math.isnan %v``, ``affine.apply affine_map<(d0) -> (d0 * 4)>(%i)``
After:  ``arith.cmpf uno, %v, %v``, ``arith.muli %i, %c4``

Left alone: everything else.  What a rule cannot express (an outer product that is not
added, a global that is no constant) is an error with its line.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, VectorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import memref_type
from xetl.dialects.kinds_of_types import is_dense
from xetl.dialects.literals import with_type
from xetl.dialects.upstream import arith, memref, vector
from xetl.dialects.upstream.memref import GlobalOp
from xetl.dialects.walk import operations_in
from xetl.dialects.xetile import LoadTileOp, TileTransposeOp
from xetl.ir.builder import Builder
from xetl.transforms.legalize_text import batches, micro_kernels, numbers, products
from xetl.transforms.legalize_text.batches import legalize_contractions
from xetl.transforms.legalize_text.control import legalize_control_flow
from xetl.transforms.legalize_text.micro_kernels import is_unread
from xetl.transforms.rewriting import Rule, Values, apply_rules


def _get_global(b: Builder, op: memref.GetGlobalOp) -> Values:
    wanted = op.symbol.root_reference
    named = [each for each in _globals_around(op) if each.sym_name == wanted]
    value = named[0].initial_value if named else None
    type_ = memref_type(op.result)
    if not named or named[0].constant is None or not is_dense(value):
        raise VerifyException(f"`{wanted.data}` is no constant of the module")
    full = VectorType(type_.element_type, type_.get_shape())
    constant = b.insert(arith.ConstantOp(with_type(value, full), full))
    memory = b.insert(memref.AllocaOp(type_))
    zero = b.constant(0, IndexType())
    rank = type_.get_num_dims()
    b.add(vector.TransferWriteOp(constant, memory, [zero] * rank))
    return [memory]


def _globals_around(op: Operation) -> list[memref.GlobalOp]:
    top = op
    while (around := top.parent_op()) is not None:
        top = around
    return operations_in(top, memref.GlobalOp)


def _transposing(b: Builder, op: LoadTileOp) -> Values | None:
    if op.permutation is None:
        return None
    load = LoadTileOp(op.tile, op.padding, attributes=dict(op.attributes))
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        if name in op.properties:
            load.properties[name] = op.properties[name]
    return [b.insert(TileTransposeOp(b.insert(load)))]


RULES: dict[type[Operation], Rule] = {
    memref.GetGlobalOp: _get_global,
    LoadTileOp: _transposing,
}


_RULES: dict[type[Operation], Rule] = {
    **batches.RULES,
    **numbers.RULES,
    **RULES,
    **micro_kernels.RULES,
    **numbers.RULES,
    **products.RULES,
    **numbers.RULES,
}


class LegalizeTextPass(ModulePass):
    """See the module docstring."""

    name = "legalize-text"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        legalize_control_flow(op)
        legalize_contractions(op)
        apply_rules(op, _RULES)
        for each in [*op.walk(reverse=True)]:
            if isinstance(each, GlobalOp) or is_unread(each):
                Rewriter.erase_op(each)
