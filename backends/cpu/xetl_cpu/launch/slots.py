"""Which slot of a launch holds what: docs/design/0001-seams.md, section 4."""

from xetl.language.signature import ArrayParam, ConstParam

PARALLEL_FOR, THREADS, WORKSPACE, WORKSPACE_BYTES = range(4)
GRID = 4
PACKED, PACKED_BYTES, PACKED_STATE = range(7, 10)
FIRST_ARGUMENT = 10


def slots_of(param: object) -> int:
    """How many a parameter takes: address, sizes and strides, or one number."""
    if isinstance(param, ConstParam):
        return 0
    return 1 + 2 * param.rank if isinstance(param, ArrayParam) else 1
