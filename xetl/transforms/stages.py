"""Which operations a module may have at each stage; a check finds those left over.

What each stage of the pipeline may hold.  A backend adds the stages of its own dialects
with `register_stage`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, StringAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP, WORKGROUP
from xetl.dialects.upstream import vector
from xetl.dialects.walk import operations_in
from xetl.dialects.xetile import TileType
from xetl.language.distribution import Layout, problem_with
from xetl.records import record
from xetl.transforms.propagate_wg_maps.map_attributes import (
    is_map,
    is_matrix,
    map_of,
    matrix_shape,
    plain,
    same_owners,
    tile_map,
)
from xetl.transforms.propagate_wg_maps.rules import is_mapped, relations, values_of

Rule = Callable[[Operation], str | None]


class StageError(VerifyException):
    """An operation stands where it may not; our mistake, never the user's."""


@record(frozen=True)
class StageSpec:
    """One stage.

    Args:
        name: what `check_stage` and the commands call it.
        dialects: all operations of these are allowed.
        operations: so are these, by their full names.
        rules: each gives what is wrong with an operation, or None.
        is_verified: whether the operations are verified where it begins; each costs
            30 us, a tenth of a kernel's time, so once is enough. Tests do it oftener.
    """

    name: str
    dialects: frozenset[str]
    operations: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = field(default=())
    is_verified: bool = True

    def problem_with(self, op: Operation) -> str | None:
        """Why ``op`` may not stand at this stage; None if it may."""
        dialect = op.name.partition(".")[0]
        if dialect not in self.dialects and op.name not in self.operations:
            return f"`{op.name}` may not stand at stage `{self.name}`"
        for rule in self.rules:
            problem = rule(op)
            if problem is not None:
                return f"stage `{self.name}`: {problem}"
        return None


_STAGES: dict[str, StageSpec] = {}


def register_stage(spec: StageSpec) -> StageSpec:
    """Make a stage known by its name; a later one of the same name replaces it."""
    _STAGES[spec.name] = spec
    return spec


def find_stage(stage_name: str) -> StageSpec:
    """The stage of this name.

    Raises:
        ValueError: there is none.
    """
    spec = _STAGES.get(stage_name)
    if spec is None:
        known = ", ".join(_STAGES)
        raise ValueError(f"no stage is called `{stage_name}`; there are: {known}")
    return spec


def check_stage(op: Operation, stage_name: str) -> None:
    """Check that every operation inside ``op`` may stand at the stage.

    Raises:
        StageError: one may not; the message names it and its source line.
        ValueError: there is no such stage.
    """
    spec = find_stage(stage_name)
    for inner in operations_in(op, Operation):
        problem = spec.problem_with(inner)
        if problem is not None:
            raise StageError(f"{problem}{_place(inner.location)}")


def _place(location: Attribute) -> str:
    if isinstance(location, CallSiteLoc):
        location = location.callee
    if not isinstance(location, FileLineColLoc):
        return ""
    line, column = location.line.data, location.column.data
    return f" (from {location.filename.data}:{line}:{column})"


# Operations that work on vectors of any rank by their nature.
_ANY_RANK = (
    *(vector.ShapeCastOp, vector.BroadcastOp, vector.MultiReductionOp),
    *(vector.ExtractOp, vector.InsertOp, vector.StepOp, vector.ReductionOp),
    *(vector.ExtractStridedSliceOp, vector.InsertStridedSliceOp),
)


def maps_agree(op: Operation) -> str | None:
    """Every vector of rank 2 has a legal map, and operands have the ones they need.

    Equal are two maps by which each subgroup owns the same.  A reduction may have any
    map on its source: the rest of a sum is exchanged.
    """
    values = [value for value in values_of(op) if is_mapped(value)]
    if not values and not any(map(is_matrix, op.operands)):
        return None
    if _is_for_subgroups(op):
        return None
    for value in values:
        problem = _problem_of_value(value)
        if problem is not None:
            return f"`{op.name}`: {problem}"
    return _problem_of_operands(op)


def _is_for_subgroups(op: Operation) -> bool:
    outer: Operation | None = op
    while outer is not None:
        if LEVEL in outer.attributes:
            return outer.attributes[LEVEL] == StringAttr(SUBGROUP)
        outer = outer.parent_op()
    return False


def _map(value: SSAValue) -> Layout | None:
    found = tile_map(value) if isinstance(value.type, TileType) else map_of(value)
    return None if found is None else plain(found)


def _problem_of_value(value: SSAValue) -> str | None:
    found = _map(value)
    if found is None:
        return f"a value of type {value.type} has no map"
    return problem_with(matrix_shape(value), found)


def _problem_of_operands(op: Operation) -> str | None:
    for relation in relations(op):
        anchor, found = _map(relation.anchor), _map(relation.operand)
        if anchor is None or found is None:
            return f"operand {relation.index} of `{op.name}` has no map"
        wanted = plain(relation.backward(anchor))
        shape = matrix_shape(relation.operand)
        if relation.is_strict and not same_owners(shape, found, wanted):
            return f"operand {relation.index} of `{op.name}` has {found}, not {wanted}"
    return None


def vectors_have_rank_2(op: Operation) -> str | None:
    """Tile values are matrices (blocked ones have rank 4)."""
    if not op.name.startswith("xetile."):
        return None
    for result in op.results:
        type_ = result.type
        if isinstance(type_, VectorType) and type_.get_num_dims() not in (1, 2, 4):
            return f"`{op.name}` gives {type_}, a tile value has rank 2"
    return None


def no_matrices(op: Operation) -> str | None:
    """Everything is a scalar or one row by now."""
    if isinstance(op, _ANY_RANK):
        return None
    for value in (*op.operands, *op.results):
        type_ = value.type
        if isinstance(type_, VectorType) and type_.get_num_dims() > 1:
            return f"`{op.name}` still works on {type_}"
    return None


def no_workgroup(op: Operation) -> str | None:
    """Each value is one subgroup's: none is spread over several."""
    if op.attributes.get(LEVEL) == StringAttr(WORKGROUP):
        return f"`{op.name}` is still of a workgroup"
    for name, value in (*op.attributes.items(), *op.properties.items()):
        if is_map(name, value):
            return f"`{op.name}` still has a map, `{name}`"
    for result in op.results:
        if isinstance(result.type, TileType) and result.type.wg_map is not None:
            return f"`{op.name}` still gives {result.type}"
    return None


_STRUCTURE = frozenset({"builtin", "gpu", "scf", "func"})
_VALUES = frozenset({"arith", "math", "vector", "memref", "index"})
_FENCE = frozenset({"xegpu.fence"})

XETILE = register_stage(
    StageSpec(
        "xetile",
        _STRUCTURE | _VALUES | {"xetile", "cf"},
        frozenset(
            {
                "xegpu.compile_hint",
                "xegpu.alloc_nbarrier",
                "xegpu.init_nbarrier",
                "xegpu.nbarrier_arrive",
                "xegpu.nbarrier_wait",
                *_FENCE,
            }
        ),
        (vectors_have_rank_2,),
    )
)
XETILE_MAPPED = register_stage(
    StageSpec(
        "xetile-mapped",
        XETILE.dialects,
        XETILE.operations,
        (vectors_have_rank_2, maps_agree),
    )
)
XETILE_SG = register_stage(
    StageSpec(
        "xetile-sg",
        XETILE.dialects,
        XETILE.operations,
        (vectors_have_rank_2, no_workgroup),
    )
)
XSMM = register_stage(
    StageSpec(
        "xsmm",
        _STRUCTURE | _VALUES | {"xsmm", "xetile", "cf", "cpu"},
        _FENCE,
        is_verified=False,
    )
)
LOOPS = register_stage(
    StageSpec(
        "loops",
        _STRUCTURE | _VALUES | {"xsmm", "cpu", "cf"},
        _FENCE,
        (no_matrices,),
        is_verified=False,
    )
)
