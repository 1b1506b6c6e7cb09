"""The operation and the identity of each kind of reduction."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, IntegerType, f32
from xdsl.ir import Attribute

from xetl.dialects.combining import normalize_kind
from xetl.dialects.upstream import arith
from xetl.dialects.upstream.elementwise import is_float

_FLOAT: dict[str, Any] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "minnumf": arith.MinnumfOp,
    "maxnumf": arith.MaxnumfOp,
    "minimumf": arith.MinimumfOp,
    "maximumf": arith.MaximumfOp,
}
_INTEGER: dict[str, Any] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "minsi": arith.MinsiOp,
    "minui": arith.MinuiOp,
    "maxsi": arith.MaxsiOp,
    "maxui": arith.MaxuiOp,
    "and": arith.AndiOp,
    "or": arith.OriOp,
    "xor": arith.XoriOp,
}
# What leaves every value as it is: -0.0 + -0.0 is -0.0, and the kinds ending in "num"
# prefer a number to NaN.
_FLOAT_IDENTITY = {
    "add": -0.0,
    "mul": 1.0,
    "minnumf": math.nan,
    "maxnumf": math.nan,
    "minimumf": math.inf,
    "maximumf": -math.inf,
}


def operation_of(kind: str, element: Attribute) -> Any:
    """The class of the operation that combines two values of a type."""
    return (_FLOAT if is_float(element) else _INTEGER)[normalize_kind(kind)]


def identity_of(kind: str, element: Attribute) -> float | int:
    """The number that combined with another leaves it as it is."""
    name = normalize_kind(kind)
    if is_float(element):
        return _FLOAT_IDENTITY[name]
    bits = element.bitwidth if isinstance(element, IntegerType) else 64
    most = (1 << (bits - 1)) - 1 if bits > 1 else 0
    return {
        **{"add": 0, "or": 0, "xor": 0, "maxui": 0, "mul": 1, "and": -1, "minui": -1},
        **{"minsi": most, "maxsi": -most - 1},
    }[name]


def sums_run_in(kind: str, element: Attribute) -> Attribute:
    """The type a reduction runs in: sums of f16 and bf16 run in f32."""
    narrow = isinstance(element, Float16Type | BFloat16Type)
    return f32 if narrow and normalize_kind(kind) in ("add", "mul") else element
