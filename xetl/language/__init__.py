"""The kernel language: what a user writes, typed and documented.

Reading order: dtypes, maps, values, ops.  Nothing here imports a compiler.
"""
