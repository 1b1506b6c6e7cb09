"""Atomics of all kinds and types: one message where devices have it, else a loop."""

from __future__ import annotations

import re

import pytest

from tests.backends.xegpu.emit.elementwise import DTYPES
from tests.backends.xegpu.emit.on_opencl import kernel, parsed
from tests.backends.xegpu.emit.test_emit_atomics import kinds_of
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from tests.backends.xegpu.spirv_tools import validate
from xetl_xegpu.emit.module import emit
from xetl_xegpu.offline.ocloc import compile_spirv

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)

INTEGERS = {
    **{"add": "iadd", "assign": "store", "and": "and", "or": "or", "xor": "xor"},
    **{"minui": "umin", "minsi": "smin", "maxui": "umax", "maxsi": "smax"},
}
WORDS = {"f64": 64, "i64": 64}
"""Bits that are swapped at once: 32 for all others."""


def atomic_kernel(kind: str, type_: str, space: str) -> str:
    zero = "false" if type_ == "i1" else f"{'0.0' if 'f' in type_ else '0'} : {type_}"
    body = f"""
      %slm = simt.local_base 8
      %zero = arith.constant {zero}
      %v = simt.load %p, %on, %zero : {type_}
      %was = simt.atomic "{kind}" %v, {"%slm" if space == "local" else "%p"}, %on
          {{space = "{space}"}} : {type_}
      simt.store %was, %q, %on : {type_}"""
    return kernel(f"k_{kind}", "%p: i64, %q: i64", body, slm=64)


def expected(kind: str, type_: str, space: str) -> str:
    """The one atomic message; `icas` compares and swaps, in a loop."""
    bits, name = WORDS.get(type_, 32), "icas"
    # Memory of the workgroup has no other atomic of 64 bits.
    if type_ == "i32" or (type_ == "i64" and space == "global"):
        name = INTEGERS.get(kind, name)
    if kind == "assign" and (type_ == "f32" or (type_, space) == ("f64", "global")):
        name = "store"
    if (kind, type_, space) == ("add", "f32", "global"):
        name = "fadd"
    return f"atomic_{name}.{'slm' if space == 'local' else 'ugm'}.d{bits}"


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize("type_", list(DTYPES))
def test_messages(type_: str, space: str, target: str):
    kinds = kinds_of(type_)
    texts = [atomic_kernel(kind, type_, space) for kind in kinds]
    spirv = emit(parsed("\n".join(texts)), target).spirv
    assert validate(spirv) is None
    made = compile_spirv(spirv, target)
    for kind in kinds:
        assembly = made.assembly[f"k_{kind}"]
        assert not re.search(r"\bcalla?\b", assembly)
        found = set(re.findall(r"atomic_\w+\.\w+\.d\d+", assembly))
        assert found == {expected(kind, type_, space)}, kind
