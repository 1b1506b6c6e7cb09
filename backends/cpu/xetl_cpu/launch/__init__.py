"""The call of a compiled kernel: arguments, threads, and memory.

This file says which slot of a launch holds what: docs/design/0001-seams.md, section 4.
"""

from xetl.language.signature import ArrayParam, ConstParam

POOL, THREADS, WORKSPACE, WORKSPACE_BYTES = range(4)
GRID = 4
PACKED = 7
FIRST_ARGUMENT = 8

PACKED_WORDS = 3
"""Words for each operand that the kernel packs, in the table whose address the slot has
(0: no table): address, bytes and state of the memory that the launch passes in."""

FORK, LOST = range(2)
"""Words of a pool: its function that forks and joins, and about how many nanoseconds
the last join of a kernel waited for idle threads."""


def slots_of(param: object) -> int:
    """Return the slots of a parameter: address, sizes and strides, or one number."""
    if isinstance(param, ConstParam):
        return 0
    return 1 + 2 * param.rank if isinstance(param, ArrayParam) else 1
