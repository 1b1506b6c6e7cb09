"""Stages of the IR: the operations that a module may contain, and the check for them.

A backend registers stages for its dialects with `register_stage`. A pass that begins a
stage registers it as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import is_vector, operations_in
from xetl.dialects.upstream import vector
from xetl.dialects.verify import place_of
from xetl.records import record

Rule = Callable[[Operation], str | None]


class StageError(VerifyException):
    """An operation is not allowed at a stage: a bug in xetl, not an error of a user."""


@record(frozen=True)
class StageSpec:
    """One stage.

    Args:
        name: its name for `check_stage` and the commands.
        dialects: dialects whose operations are all allowed.
        operations: full names of other operations that are allowed.
        rules: each returns the problem with an operation, or None.
        is_verified: whether all operations are verified when the stage begins. This
            takes 30 us an operation, a tenth of the compile time in all, so it is done
            at one stage only. Tests verify every stage.
    """

    name: str
    dialects: frozenset[str]
    operations: frozenset[str] = frozenset()
    rules: tuple[Rule, ...] = field(default=())
    is_verified: bool = True

    def problem_with(self, op: Operation) -> str | None:
        """Return why ``op`` is not allowed at this stage; None if it is allowed."""
        dialect = op.name.partition(".")[0]
        if dialect not in self.dialects and op.name not in self.operations:
            return f"`{op.name}` may not stand at stage `{self.name}`"
        for rule in self.rules:
            problem = rule(op)
            if problem is not None:
                return f"stage `{self.name}`: {problem}"
        return None

    def with_rule(self, name: str, rule: Rule) -> StageSpec:
        """Register a stage with one more rule, without verification."""
        rules = (*self.rules, rule)
        return register_stage(
            StageSpec(name, self.dialects, self.operations, rules, False)
        )


_STAGES: dict[str, StageSpec] = {}


def register_stage(spec: StageSpec) -> StageSpec:
    """Register a stage by its name; it replaces a stage of the same name."""
    _STAGES[spec.name] = spec
    return spec


def find_stage(stage_name: str) -> StageSpec:
    """Return the stage of this name; raise a ValueError if there is none."""
    spec = _STAGES.get(stage_name)
    if spec is None:
        known = ", ".join(_STAGES)
        raise ValueError(f"no stage is called `{stage_name}`; there are: {known}")
    return spec


def check_stage(op: Operation, stage_name: str) -> None:
    """Check that every operation inside ``op`` is allowed at the stage.

    Raises:
        StageError: one is not; the message names it and its source line.
        ValueError: there is no such stage.
    """
    spec = find_stage(stage_name)
    for inner in operations_in(op, Operation):
        problem = spec.problem_with(inner)
        if problem is not None:
            where = place_of(inner)
            raise StageError(f"{problem} (from {where})" if where else problem)


# Operations that work on vectors of any rank by their nature.
_ANY_RANK = (
    *(vector.ShapeCastOp, vector.BroadcastOp, vector.MultiReductionOp),
    *(vector.ExtractOp, vector.InsertOp, vector.StepOp, vector.ReductionOp),
    *(vector.ExtractStridedSliceOp, vector.InsertStridedSliceOp),
)


def vectors_have_rank_2(op: Operation) -> str | None:
    """Check that tile values have rank 2, or rank 4 if they are blocked."""
    if not op.name.startswith("xetile."):
        return None
    for result in op.results:
        type_ = result.type
        if is_vector(type_) and type_.get_num_dims() not in (1, 2, 4):
            return f"`{op.name}` gives {type_}, a tile value has rank 2"
    return None


def no_matrices(op: Operation) -> str | None:
    """Check that all values are scalars or vectors of rank 1."""
    if isinstance(op, _ANY_RANK):
        return None
    for value in (*op.operands, *op.results):
        type_ = value.type
        if is_vector(type_) and type_.get_num_dims() > 1:
            return f"`{op.name}` still works on {type_}"
    return None


_STRUCTURE = frozenset({"builtin", "gpu", "scf", "func"})
_VALUES = frozenset({"arith", "math", "vector", "memref", "index"})
_FENCE = frozenset({"xegpu.fence"})
_BARRIERS = frozenset({"xegpu.alloc_nbarrier", "xegpu.init_nbarrier"})
_WAITS = frozenset({"xegpu.nbarrier_arrive", "xegpu.nbarrier_wait"})
_OF_GPUS = _FENCE | _BARRIERS | _WAITS | {"xegpu.compile_hint"}
_ALL = _STRUCTURE | _VALUES | {"cf"}
_OF_CPUS = _ALL | {"xsmm", "cpu"}

XETILE = register_stage(
    StageSpec("xetile", _ALL | {"xetile"}, _OF_GPUS, (vectors_have_rank_2,))
)
XSMM = register_stage(
    StageSpec("xsmm", _OF_CPUS | {"xetile"}, _FENCE, is_verified=False)
)
LOOPS = register_stage(
    StageSpec("loops", _OF_CPUS, _FENCE, (no_matrices,), is_verified=False)
)
