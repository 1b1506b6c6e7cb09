"""The front end: it turns a Python function into XeTile IR.

Reading order: source (finds the syntax tree), types (values and scopes of names),
context (state and registries), module (the entry); statements, expressions and calls
compile syntax; build_* make the IR of each operation.
"""

# These modules are imported because they register handlers.
from xetl.frontend import (
    attributes,
    build_math,
    build_memory,
    build_mma,
    build_program,
    build_tiles,
    build_vectors,
    calls,
    expressions,
    statements,
)
from xetl.frontend.module import build_module

__all__ = ["attributes", "build_math", "build_memory", "build_mma", "build_module"]
__all__ += ["build_program", "build_tiles", "build_vectors", "calls", "expressions"]
__all__ += ["statements"]
