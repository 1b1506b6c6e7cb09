"""The inner loops that we generate ourselves: GEMM of one block, and packing for it.

`blocking` chooses sizes. Each ``emit_*`` function adds one function to an
``llvmlite.ir.Module``; this calls nothing outside the module.
"""
