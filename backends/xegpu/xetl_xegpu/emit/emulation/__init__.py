"""Intel's builtins for devices that lack them: their definitions, beside the kernels.

They say in LLVM IR what the extensions say in words, so that every kernel runs on
opencl:cpu. Each stays a function, which drivers build fastest; rows are loops, products
are not.
"""

from __future__ import annotations

from typing import Any

from xetl.codegen.llvm import ll
from xetl_xegpu.emit.builtins import find_builtin
from xetl_xegpu.emit.emulation import (
    blocks,
    conversions,
    lane_products,
    matrix,
    words,
)
from xetl_xegpu.emit.emulation.body import Body


def define_builtins(module: Any, *, emulates_intel: bool) -> None:
    """Define what an `llvmlite.ir.Module` declares and no driver knows.

    Args:
        module: completed in place.
        emulates_intel: whether Intel's builtins are among them.
    """
    for function in list(module.functions):
        builtin = None if function.blocks else find_builtin(function.name)
        if builtin is None or not (
            builtin.is_ours or (emulates_intel and builtin.is_intel)
        ):
            continue
        # Drivers of processors build functions fastest; GPUs have no calls here.
        if emulates_intel:
            function = words.behind(function)
        function.attributes.add("noinline" if emulates_intel else "alwaysinline")
        body = Body(ll.IRBuilder(function.append_basic_block("entry")), builtin)
        if builtin.block is not None:
            blocks.define(body)
        elif builtin.product is not None and builtin.is_ours:
            lane_products.define(body)
        elif builtin.product is not None:
            matrix.define(body)
        else:
            conversions.define(body)
