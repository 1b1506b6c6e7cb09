"""f32 to bf16."""

from __future__ import annotations

from xetl.codegen.arith import round_to_bf16
from xetl_xegpu.emit.emulation.body import Body


def define(body: Body) -> None:
    """Write the conversion."""
    (value,) = body.arguments
    body.builder.ret(round_to_bf16(body.builder, value))
