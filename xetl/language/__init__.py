"""The kernel language: the typed and documented functions and classes for users.

Reading order: dtypes, maps, values, ops.  Nothing here imports a compiler.
"""
