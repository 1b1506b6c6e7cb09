"""``llvmlite.ir``, which ships no types: through here all its objects are ``Any``."""

from __future__ import annotations

from typing import Any

from llvmlite import ir as _llvmlite_ir

ll: Any = _llvmlite_ir


def _make_bfloat() -> Any:
    """``bfloat``, which llvmlite.ir lacks; it has no constants of its own."""
    half: Any = ll.HalfType

    def name(_: Any) -> str:
        return "bfloat"

    members = {"intrinsic_name": "bf16", "__str__": name}
    bfloat: Any = type("BFloatType", (half,), members)
    # llvmlite keeps one instance of each floating type.
    bfloat._create_instance()
    return bfloat()


BF16: Any = _make_bfloat()
