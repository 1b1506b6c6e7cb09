"""Names of the attributes that describe a kernel (docs/design/0001-seams.md, 2)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation

from .base import dense_i64, ints_of, is_array

LEVEL = "xetile.level"
WORKGROUP, SUBGROUP = "workgroup", "subgroup"
"""The level of a kernel: whether a value belongs to a workgroup or to a subgroup."""

SUBGROUPS = "xetile.subgroups"
"""The subgroups of a workgroup: rows and columns, or (in texts) along x, y and z."""

ARG_NAMES = "xetile.arg_names"
ALIAS_GROUPS = "xetile.alias_groups"

TEXT = "xetile.text"
"""Marks a kernel that a user wrote as text: operations may have any form."""

PARALLEL = "xetile.parallel"
"""Marks a loop of a text whose iterations are independent and may run in any order."""

STORED = "xetl.stored"
"""The array arguments that a function writes. Only functions that run a whole launch
have it; their last three arguments are the grid."""

STAGE = "xetl.stage"
"""The backend and the stage, such as ``cpu.xsmm``, after which compilation of a text
continues: the stage printed the text, or the text is in the dialect of the stage."""

BOUNDS, DIM = "xetile.bounds", "xetile.dim"
"""The array, and its dimension, whose bounds a comparison or a tile has to keep."""

SHARED = 3
"""The memory space of shared local memory."""

LANES = 16
"""The lanes of a subgroup."""


def argument_names(function: Operation, count: int) -> list[str]:
    """Return the user's names of arguments: ``argument 0``, ... without a name."""
    given = {**function.properties, **function.attributes}.get(ARG_NAMES)
    names = given if is_array(given) else ()
    found = [each.data for each in names if isinstance(each, StringAttr)]
    return found + [f"argument {number}" for number in range(len(found), count)]


def attributes_of_kernel(
    level: str,
    names: Sequence[str],
    aliases: Sequence[int],
    subgroups: Sequence[int] | None,
    *marks: str,
) -> dict[str, Attribute]:
    """Return the attributes that describe a kernel.

    Args:
        level: whether values belong to a workgroup or to a subgroup.
        names: the names of the arguments.
        aliases: a number for each argument: equal for arguments that are the very same
            view, -1 for all others.
        subgroups: subgroups of a workgroup, for a kernel at subgroup level.
        marks: names of further attributes, such as `TEXT`.
    """
    found: dict[str, Attribute] = {LEVEL: StringAttr(level)}
    found |= dict.fromkeys(marks, UnitAttr())
    found[ARG_NAMES] = ArrayAttr([StringAttr(name) for name in names])
    found[ALIAS_GROUPS] = dense_i64(aliases)
    if subgroups is not None:
        found[SUBGROUPS] = dense_i64(subgroups)
    return found


def subgroups_along_axes(kernel: Operation) -> tuple[int, int, int]:
    """Return the subgroups along x, y and z; a Python kernel has rows and columns."""
    counts = ints_of(kernel.attributes.get(SUBGROUPS)) or (1, 1)
    x, y, z = counts if len(counts) == 3 else (counts[-1], counts[0], 1)
    return x, y, z


def stage_of(module: ModuleOp) -> tuple[str, str] | None:
    """Return the backend and the stage of a text; see `STAGE`.

    Return None if no function of the module has the attribute.
    """
    for function in module.body.block.ops:
        stage = function.attributes.get(STAGE)
        if isinstance(stage, StringAttr):
            backend, _, name = stage.data.partition(".")
            return backend, name
    return None


def mark_stage(module: ModuleOp, backend: str, stage: str) -> None:
    """Record the stage in all functions that run a whole launch."""
    for function in module.body.block.ops:
        if STORED in function.attributes:
            function.attributes[STAGE] = StringAttr(f"{backend}.{stage}")
