"""What is measured as the most that this machine does."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from xetl_cpu import peak
from xetl_cpu.targets import find_target


def test_what_the_machine_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "_SECONDS", 0.0)
    monkeypatch.setattr(peak, "_COPIED", 1 << 16)
    for dtype in ("f32", "bf16", "i8"):
        loop = peak.fastest_loop(dtype)
        assert peak.Products(loop, 2, 1e7).measure() > 0
    assert all(rate > 0 for rate in peak.measure_peak.__wrapped__("f32"))


def test_tiles_are_the_peak_where_there_are_tiles() -> None:
    has_amx = find_target("host").has_amx
    assert (peak.fastest_loop("bf16").lanes == 0) == has_amx
    assert peak.fastest_loop("f32").lanes > 0


@pytest.mark.parametrize(
    ("dtype", "product", "operations"),
    [
        ("bf16", "tdpbf16ps", 4 * 2 * 16 * 16 * 32),
        ("i8", "tdpbssd", 4 * 2 * 16 * 16 * 64),
    ],
)
def test_a_trip_of_tiles_is_four_loads_and_four_products(
    dtype: str, product: str, operations: int
) -> None:
    """Assembly of a machine with tiles, whatever this one is."""
    loop = peak.tile_loop(dtype)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("x86_64-linux-gnu").create_target_machine(
        cpu="sapphirerapids", opt=2
    )
    text = machine.emit_assembly(llvm.parse_assembly(loop.text))
    body = text.partition("ldtilecfg")[2]
    assert body.count(product) == 4
    assert body.count("tileloadd\t") == 4
    assert loop.operations == operations


def test_tiles_read_numbers_and_registers_begin_with_zeros() -> None:
    """Silicon is faster on zeros than any matrix is."""
    tiles = peak.operands(peak.tile_loop("bf16"))
    assert tiles.ctypes.data % 64 == 0
    assert (tiles != 0).mean() > 0.99
    assert not peak.operands(peak.register_loop("f32")).any()
