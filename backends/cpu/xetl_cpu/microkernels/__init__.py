"""The inner loops we generate ourselves: GEMM of one block, and the packing for it.

`blocking` decides, the ``emit_*`` functions add one function each to an
``llvmlite.ir.Module``.  What they emit calls nothing outside the module.
"""
