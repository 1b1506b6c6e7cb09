"""Which slot of a launch holds what: docs/design/0001-seams.md, section 4."""

PARALLEL_FOR, THREADS, WORKSPACE, WORKSPACE_BYTES = range(4)
GRID = 4
PACKED, PACKED_BYTES, PACKED_STATE = range(7, 10)
FIRST_ARGUMENT = 10
