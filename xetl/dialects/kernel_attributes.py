"""Names of the attributes that say what a kernel is (docs/design/0001-seams.md, 2)."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from .base import ints_of

LEVEL = "xetile.level"
WORKGROUP, SUBGROUP = "workgroup", "subgroup"
"""What a value belongs to."""

SUBGROUPS = "xetile.subgroups"
"""Subgroups of a workgroup: rows and columns, or those along x, y and z of a text."""

ARG_NAMES = "xetile.arg_names"
ALIAS_GROUPS = "xetile.alias_groups"

TEXT = "xetile.text"
"""A kernel that a user wrote as text: any form of any operation may occur."""

PARALLEL = "xetile.parallel"
"""Of a loop of a text: no trip needs another one, so they may run in any order."""

STORED = "xetl.stored"
"""Which array arguments a function writes that runs a whole launch: its grid is the
last three arguments."""

STAGE = "xetl.stage"
"""Of a text that a stage printed, or has the dialect of: the backend and that stage,
to go on from, ``cpu.xsmm``."""

SHARED = 3
"""The memory space of shared local memory."""

LANES = 16
"""Of a subgroup."""


def subgroups_along_axes(kernel: Operation) -> tuple[int, int, int]:
    """Subgroups along x, y and z; a Python kernel says rows and columns of them."""
    counts = ints_of(kernel.attributes.get(SUBGROUPS)) or (1, 1)
    x, y, z = counts if len(counts) == 3 else (counts[-1], counts[0], 1)
    return x, y, z


def stage_of(module: ModuleOp) -> tuple[str, str] | None:
    """The backend and the stage that a text was printed at; None if it was not."""
    for function in module.body.block.ops:
        stage = function.attributes.get(STAGE)
        if isinstance(stage, StringAttr):
            backend, _, name = stage.data.partition(".")
            return backend, name
    return None


def mark_stage(module: ModuleOp, backend: str, stage: str) -> None:
    """Say in functions that run a whole launch what they were lowered to."""
    for function in module.body.block.ops:
        if STORED in function.attributes:
            function.attributes[STAGE] = StringAttr(f"{backend}.{stage}")
