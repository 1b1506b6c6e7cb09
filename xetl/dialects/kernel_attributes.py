"""Names of the attributes that say what a kernel is (docs/design/0001-seams.md, 2)."""

from __future__ import annotations

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

SHARED = 3
"""The memory space of shared local memory."""


def subgroups_along_axes(kernel: Operation) -> tuple[int, int, int]:
    """Subgroups along x, y and z; a Python kernel says rows and columns of them."""
    counts = ints_of(kernel.attributes.get(SUBGROUPS)) or (1, 1)
    x, y, z = counts if len(counts) == 3 else (counts[-1], counts[0], 1)
    return x, y, z
