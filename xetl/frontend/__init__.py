"""Python function -> XeTile IR.

Reading order: source (finds the syntax tree), types and scope (what names stand for),
context (state and registries), module (the entry); statements, expressions and calls
handle syntax; build_* say what each operation becomes.
"""

# Imported for their handlers, which register themselves.
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

__all__ = [
    "attributes",
    "build_math",
    "build_memory",
    "build_mma",
    "build_module",
    "build_program",
    "build_tiles",
    "build_vectors",
    "calls",
    "expressions",
    "statements",
]
