"""Names of the attributes that say what a kernel is (docs/design/0001-seams.md, 2)."""

LEVEL = "xetile.level"
WORKGROUP, SUBGROUP = "workgroup", "subgroup"
"""What a value belongs to."""

SUBGROUPS = "xetile.subgroups"
"""Subgroups of a workgroup: rows and columns, or those along x, y and z of a text."""

ARG_NAMES = "xetile.arg_names"
ALIAS_GROUPS = "xetile.alias_groups"

TEXT = "xetile.text"
"""A kernel that a user wrote as text: any form of any operation may occur."""
