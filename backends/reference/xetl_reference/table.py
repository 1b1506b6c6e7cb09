"""All operations the reference backend knows, and how others are added."""

from __future__ import annotations

from collections.abc import Mapping

from xetl_reference import (
    breakpoints,
    casts,
    control,
    debugging,
    floats,
    integers,
    mathematics,
    named_barriers,
    programs,
    reshaping,
    tile_values,
    tiles,
    vector_memory,
    vectors,
    views,
)
from xetl_reference.plan import Table
from xetl_reference.values import Meaning

TABLE = Table(
    meanings={
        **integers.MEANINGS,
        **floats.MEANINGS,
        **mathematics.MEANINGS,
        **casts.MEANINGS,
        **vectors.MEANINGS,
        **vector_memory.MEANINGS,
        **views.MEANINGS,
        **reshaping.MEANINGS,
        **tiles.MEANINGS,
        **tile_values.MEANINGS,
        **programs.MEANINGS,
        **debugging.MEANINGS,
        **breakpoints.MEANINGS,
    },
    builders={
        **control.BUILDERS,
        **views.BUILDERS,
        **programs.BUILDERS,
        **named_barriers.BUILDERS,
    },
)


def register_op(name: str, meaning: Meaning) -> None:
    """Teach the backend an operation for good.

    Args:
        name: as in the IR, ``dialect.operation``.
        meaning: given the operation, the function from its operands' values (in the
            order of ``op.operands``) to its result's value.
    """
    TABLE.meanings[name] = meaning


def table_with(extra: Mapping[str, Meaning] | None) -> Table:
    """The table with more operations, as for `register_op`, for one module."""
    return TABLE.extended(extra) if extra else TABLE
