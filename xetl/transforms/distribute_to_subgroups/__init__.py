"""Split the work of a workgroup among its subgroups.

*What*: replace each tile and each value of a workgroup by the parts that one subgroup
owns by its map. The kernel becomes a kernel for subgroups. The backends run it like a
kernel that the user wrote for subgroups.
*Why*: hardware runs subgroups. After this pass an operation is the work of one of them.
*How*: walk the kernel once, in source order, with a rule for each family of operations
(the modules of this folder). Values that are not distributed (scalars, vectors of other
ranks than 2) are the same in all subgroups and stay. Memory is written once: shared
parts by their first owner, values that are not distributed by one subgroup. Data that
another subgroup needs goes through shared memory.

before: %v = xetile.load_tile %t : tile<64x32xf32, wg_map = <[2, 2], [32, 16]>>
after:  %v = xetile.load_tile %t : tile<32x16xf32>     (%t begins at this one's origin)

*Left alone*: kernels at subgroup level.
Source: XeTile RFC, "Workgroup Level XeTile extension"; docs/design/0003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, Region
from xdsl.traits import MemoryEffectKind, get_effects

from xetl.dialects import traits, xetile
from xetl.dialects.base import memref_type, operations_in
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP, SUBGROUPS, WORKGROUP
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import arith, func, gpu, memref, scf, vector
from xetl.dialects.xetile.types import SHARED
from xetl.dialects.xetile.used_maps import used_maps
from xetl.ir.builder import Pass
from xetl.ir.conversion import convert_for, convert_if, convert_while
from xetl.transforms.check_workgroup import SLM_LIMIT, shared_bytes
from xetl.transforms.diagnostics import refusal
from xetl.transforms.distribute_to_subgroups import context, rules
from xetl.transforms.distribute_to_subgroups.distributor import Distributor, Rule
from xetl.transforms.propagate_wg_maps.map_attributes import is_map, map_of, tile_map
from xetl.transforms.stages import XETILE


def distribute_control(d: Distributor, op: Operation) -> None:
    """Replace a loop, a conditional or another operation with regions."""
    arguments = [a for region in op.regions for b in region.blocks for a in b.args]
    loops: dict[type[Operation], Any] = {
        scf.ForOp: convert_for,
        scf.WhileOp: convert_while,
    }
    convert = loops.get(type(op), convert_if)
    if not any(context.is_distributed(value) for value in (*op.results, *arguments)):
        # An operation that carries no distributed value stays; only its body changes.
        d.keep(op)
        for region in op.regions:
            for block in region.blocks:
                d.run(list(block.ops))
        return
    if arguments and convert is convert_if:
        raise refusal(
            op, "it carries values of a workgroup", "use `scf.for` or `scf.while`"
        )
    new: Operation = convert(d, op)
    new.attributes |= context.without_maps(op.attributes)


MOST_SCRATCH = 1 << 16
"""Bytes: a larger exchange takes several rounds, to leave memory to others."""
LEAST_SCRATCH = 1 << 10
"""Bytes that exchanges take even if the kernel allocates all shared memory."""

_RULES: dict[type[Operation], Rule] = {
    xetile.InitTileOp: rules.init_tile,
    xetile.UpdateTileOffsetOp: rules.update_tile_offset,
    xetile.LoadTileOp: rules.load_tile,
    xetile.PrefetchTileOp: rules.prefetch_tile,
    xetile.TileMmaOp: rules.distribute_mma,
    xetile.TileConvLayoutOp: rules.convert_layout,
    arith.ConstantOp: rules.derive_or_compute_by_all,
    vector.BroadcastOp: rules.distribute_broadcast,
    vector.ShapeCastOp: rules.distribute_shape_cast,
    vector.TransposeOp: rules.distribute_transpose,
    vector.ExtractStridedSliceOp: rules.distribute_lines,
    vector.InterleaveOp: rules.distribute_lines,
    vector.CreateMaskOp: rules.derive_or_compute_by_all,
    vector.ConstantMaskOp: rules.derive_or_compute_by_all,
    # The condition is the same in all subgroups: all of them stop.
    xetile.AssertOp: rules.compute_by_all,
}
_OF_TRAITS: dict[type[traits.ElementTrait], Rule] = {
    traits.Elementwise: rules.distribute_elementwise,
    traits.Reduces: rules.distribute_reduce,
    traits.Repeats: rules.distribute_broadcast,
    traits.Scans: rules.distribute_lines,
    traits.Transposes: rules.distribute_transpose,
    traits.AccessesTile: rules.access_tile,
}
_OF_ALL = ("gpu.", "xegpu.", "scf.", "cf.")
"""Dialects whose operations each subgroup performs, whatever their effects."""
_ONCE = frozenset({MemoryEffectKind.WRITE})


def _rule_of(op: Operation) -> Rule | None:
    """Return the rule that replaces an operation. Return None if it stays as it is."""
    if op.regions:
        return distribute_control
    if isinstance(op, func.CallOp):
        return _refuse_call
    if any(context.is_distributed(value) for value in (*op.operands, *op.results)):
        if isinstance(op, scf.YieldOp | scf.ConditionOp):
            return None  # the rule of the loop around it replaces it
        trait = traits.element_trait(type(op))
        rule = _RULES.get(type(op)) or (_OF_TRAITS[trait] if trait else None)
        if rule is not None:
            return rule
        return rules.do_by_one if _is_done_once(op) else rules.compute_by_all
    if isinstance(op, memref.DeallocOp):
        return _drop if memory_space_of(memref_type(op.memref)) == SHARED else None
    if _is_done_once(op):
        return rules.do_by_one
    return rules.IDENTITY_RULES.get(type(op))


def _is_done_once(op: Operation) -> bool:
    """Whether an operation writes memory that all subgroups share."""
    if op.name.startswith(_OF_ALL) or isinstance(op, xetile.AssertOp):
        return False
    effects = get_effects(op) or ()
    writes = any(effect.kind in _ONCE for effect in effects)
    return writes and not context.writes_private(op)


def _refuse_call(d: Distributor, op: Operation) -> None:
    """Refuse a call that is not inlined: should it run once, or in each subgroup?"""
    help_ = "write what it does in the kernel: it calls itself, or has several blocks"
    raise refusal(op, "a kernel of workgroups cannot call this function", help_)


def _drop(d: Distributor, op: Operation) -> None:
    """Drop a deallocation of shared memory: other subgroups may still read it."""


def subgroups_of(body: Region) -> tuple[int, ...]:
    """Return the ``sg_layout`` of the first map in a mapped kernel."""
    for op in body.walk():
        for value in op.results:
            is_tile = isinstance(value.type, xetile.TileType)
            layout = tile_map(value) if is_tile else map_of(value)
            if layout is not None:
                return layout.sg_layout
    return (1, 1)


@dataclass(frozen=True)
class DistributeToSubgroupsPass(Pass):
    """See the module docstring.

    Attributes:
        slm_limit: bytes of shared memory that a workgroup may use. Exchanges take
            what the kernel leaves, but no more than `MOST_SCRATCH`.
    """

    slm_limit: int = SLM_LIMIT

    def rewrite(self, op: ModuleOp) -> None:
        for function in operations_in(op, gpu.FuncOp, func.FuncOp):
            if is_workgroup(function):
                self._distribute(function, function.body)

    def _distribute(self, function: Operation, body: Region) -> None:
        if any(context.is_distributed(argument) for argument in body.blocks[0].args):
            problem = "a kernel of workgroups takes arrays and scalars"
            raise refusal(function, problem, "load what it works on in the kernel")
        rows, columns = subgroups_of(body)
        allocations = operations_in(body, memref.AllocOp, memref.AllocaOp)
        left = self.slm_limit - sum(map(shared_bytes, allocations))
        scratch = max(LEAST_SCRATCH, min(left, MOST_SCRATCH))
        team = context.Subgroups(body.blocks[0], rows * columns, scratch)
        distributor = Distributor(team, _rule_of)
        for block in body.blocks:
            distributor.run(list(block.ops))
        distributor.finish()
        function.attributes[LEVEL] = StringAttr(SUBGROUP)
        function.attributes[SUBGROUPS] = DenseArrayBase.from_list(i64, [rows, columns])


def is_workgroup(function: Operation) -> bool:
    """Whether a function has workgroup level, or has no level but uses a map."""
    level = function.attributes.get(LEVEL)
    if level is None:
        return bool(used_maps(function))
    return level == StringAttr(WORKGROUP)


def no_workgroup(op: Operation) -> str | None:
    """Return an error message if an operation still is at workgroup level."""
    if op.attributes.get(LEVEL) == StringAttr(WORKGROUP):
        return f"`{op.name}` is still of a workgroup"
    for name, value in (*op.attributes.items(), *op.properties.items()):
        if is_map(name, value):
            return f"`{op.name}` still has a map, `{name}`"
    for result in op.results:
        if isinstance(result.type, xetile.TileType) and result.type.wg_map is not None:
            return f"`{op.name}` still gives {result.type}"
    return None


XETILE_SG = XETILE.with_rule("xetile-sg", no_workgroup)
