"""What a kernel asks of the caches stands in the messages of its code."""

from __future__ import annotations

import re

import pytest

from tests.backends.xegpu.emit.on_opencl import kernel, parsed
from tests.backends.xegpu.offline.compiling import compiled
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from tests.backends.xegpu.spirv_tools import validate
from xetl import load_mlir
from xetl.backend import find_backend
from xetl.pipeline import lowered
from xetl_xegpu.emit.module import emit
from xetl_xegpu.limits import Hints, Kind, legal_hints
from xetl_xegpu.offline.ocloc import compile_spirv

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
TARGETS = ("pvc", "bmg")

SHORT = {
    **{"uncached": "uc", "cached": "ca", "streaming": "st", "read_invalidate": "ri"},
    **{"write_back": "wb", "write_through": "wt"},
}
_MESSAGE = re.compile(r"(load|store)(_block2d)?\.ugm\.d\w+\.a64((?:\.[a-z]{2})*)\b")

BLOCK = "bits = 32, rows = 8, columns = 16"


def said(hints: Hints) -> str:
    return f'l1_hint = "{hints.l1}", l3_hint = "{hints.l3}"'


def accesses(load: Hints, store: Hints) -> str:
    """A block and a line that are loaded and stored, and a block that is asked for."""
    return f"""
      %w = arith.constant 64 : i64
      %h = arith.constant 64 : i64
      %x = arith.constant 0 : i64
      %y = arith.constant 8 : i64
      simt.block_prefetch %p, %w, %h, %w, %x, %y {{{BLOCK}, {said(load)}}}
      %v = simt.block_load %p, %w, %h, %w, %x, %x {{{BLOCK}, {said(load)}}}
          : vector<8xi32>
      simt.block_store %v, %p, %w, %h, %w, %x, %y {{{BLOCK}, {said(store)}}}
          : vector<8xi32>
      %four = arith.constant 4 : i64
      %near = arith.muli %wide, %four : i64
      %far = arith.constant 65536 : i64
      %start = arith.addi %p, %far : i64
      %from = arith.addi %start, %near : i64
      %to = arith.addi %from, %far : i64
      %zero = arith.constant 0 : i32
      %line = simt.load %from, %on, %zero {{{said(load)}}} : i32
      simt.store %line, %to, %on {{{said(store)}}} : i32"""


def messages(texts: list[str], target: str) -> list[list[tuple[str, ...]]]:
    """What each kernel loads and stores in global memory, and how."""
    spirv = emit(parsed("\n".join(texts)), target).spirv
    assert validate(spirv) is None
    made = compile_spirv(spirv, target)
    assert "Unsupported cache controls" not in made.log
    return [_MESSAGE.findall(made.assembly[f"k{n}"]) for n in range(len(texts))]


def pairs(target: str) -> list[tuple[Hints, Hints]]:
    """Each pair of a load at least once, and of a store."""
    loads, stores = legal_hints(target, "load"), legal_hints(target, "store")
    return [
        (loads[n % len(loads)], stores[n % len(stores)])
        for n in range(max(len(loads), len(stores)))
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_every_pair_reaches_its_message(target: str):
    asked = pairs(target)
    texts = [
        kernel(f"k{n}", "%p: i64", accesses(*each)) for n, each in enumerate(asked)
    ]
    for (load, store), found in zip(asked, messages(texts, target), strict=True):
        loads, stores = (f".{SHORT[h.l1]}.{SHORT[h.l3]}" for h in (load, store))
        assert sorted(found) == sorted(
            [
                *[("load", "_block2d", loads)] * 2,
                ("store", "_block2d", stores),
                ("load", "", loads),
                ("store", "", stores),
            ]
        )


@pytest.mark.parametrize("target", TARGETS)
def test_accesses_of_one_address_ask_for_different_things(target: str):
    """The decorations of one pointer are not those of another of the same number."""
    body = f"""
      %w = arith.constant 64 : i64
      %x = arith.constant 0 : i64
      %u = simt.block_load %p, %w, %w, %w, %x, %x {{{BLOCK},
          l1_hint = "uncached", l3_hint = "cached"}} : vector<8xi32>
      %v = simt.block_load %p, %w, %w, %w, %x, %w {{{BLOCK},
          l1_hint = "streaming", l3_hint = "uncached"}} : vector<8xi32>
      %s = arith.addi %u, %v : vector<8xi32>
      simt.block_store %s, %p, %w, %w, %w, %x, %x {{{BLOCK},
          l1_hint = "write_back", l3_hint = "write_back"}} : vector<8xi32>
      %plain = simt.block_load %p, %w, %w, %w, %w, %w {{{BLOCK}}} : vector<8xi32>
      simt.block_store %plain, %p, %w, %w, %w, %x, %w {{{BLOCK}}} : vector<8xi32>"""
    (found,) = messages([kernel("k0", "%p: i64", body)], target)
    assert sorted(hints for _, _, hints in found) == [
        "",
        "",
        ".st.uc",
        ".uc.ca",
        ".wb.wb",
    ]


KINDS: tuple[Kind, ...] = ("load", "store")


def test_the_devices_differ_in_what_is_dropped_after_reading():
    assert Hints("read_invalidate", "cached") in legal_hints("pvc", "load")
    assert Hints("read_invalidate", "cached") not in legal_hints("bmg", "load")
    for kind in KINDS:
        assert not legal_hints("opencl", kind)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["i8", "f16", "f32"])
def test_tiles_are_asked_for_with_hints(target: str, dtype: str) -> None:
    """Also where the compiler has no message of one block as wide as without hints."""
    tile = f"!xetile.tile<40x64x{dtype}>"
    text = f"""
    gpu.module @m {{
      gpu.func @asks(%X: memref<64x64x{dtype}>) kernel attributes {{
          known_block_size = array<i32: 16, 1, 1>}} {{
        %t = xetile.init_tile %X[0, 0] : memref<64x64x{dtype}> -> {tile}
        xetile.prefetch_tile %t {{l1_hint = #xetile.cache_hint<streaming>}} : {tile}
        gpu.return
      }}
    }}"""
    module, _ = load_mlir(text)["asks"].for_any_arguments()
    module = lowered(module, find_backend("xegpu"), target)
    seen = compiled(module, target)["asks"]
    assert seen.found == seen.planned
    assert seen.found.prefetches == 2 * {"i8": 2, "f16": 2, "f32": 4}[dtype]
