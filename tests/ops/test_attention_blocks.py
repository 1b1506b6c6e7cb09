"""How many queries a program of attention has, and keys a block."""

from typing import Any

import numpy as np
import pytest

from xetl.language.dtypes import bf16, f32
from xetl.ops.attention.blocks import blocks_of, gradient_blocks, whole_gradient_blocks
from xetl.ops.calling.declarations import Operand
from xetl.settings import config
from xetl_cpu.targets import find_target


@pytest.fixture
def blocks() -> Any:
    """Of ``s`` queries and ``t`` keys, for a target."""

    def found(target: str, dtype: Any, s: int, t: int, e: int = 64, **how: bool) -> Any:
        config.target = target
        # What elements are does not matter: only where they are.
        arrays = [np.zeros((n, e), np.float32) for n in (s, t, t)]
        given = [Operand("qkv"[i], x.shape, dtype, x) for i, x in enumerate(arrays)]
        return blocks_of(given, (s, t), **{"is_masked": False} | how)

    yield found
    del config.target


@pytest.mark.parametrize("target", ["avx2", "avx512", "amx"])
def test_little_is_computed_in_vain(blocks, target):
    for dtype in (f32, bf16):
        for extent in (33, 77, 128, 197, 300, 577, 1025):
            rows, keys = blocks(target, dtype, extent, extent)
            assert -(-extent // rows) * rows <= extent * 1.3 + 32
            assert -(-extent // keys) * keys <= extent * 1.3 + 32
        assert [blocks(target, dtype, s, 64)[0] for s in (1, 3)] == [1, 4]


@pytest.mark.parametrize(
    ("target", "dtype", "rows"),
    [
        ("avx2", f32, (4, 4, 4, 16, 24, 56)),
        ("avx512", bf16, (4, 4, 4, 16, 24, 56)),
        ("avx512_bf16", bf16, (8, 8, 16, 16, 24, 56)),
        ("amx", bf16, (16, 16, 16, 16, 32, 32)),
    ],
)
def test_a_few_queries_are_streamed_unless_pairs_are_multiplied(
    blocks: Any, target: str, dtype: Any, rows: tuple[int, ...]
) -> None:
    """Up to 2.4 times as fast, where tiles of 16 and more queries would be padded."""
    extents = (5, 8, 9, 16, 24, 49)
    assert tuple(blocks(target, dtype, s, 1024)[0] for s in extents) == rows


def test_what_fits_is_as_large_as_it_may_be(blocks):
    for extent in (512, 1024, 2048, 4096):
        assert blocks("avx512", bf16, extent, extent) == (64, 256)
        assert blocks("avx512", f32, extent, extent, 128, is_masked=True) == (64, 64)
        assert blocks("amx", f32, extent, extent) == (64, 256)


def test_blocks_of_keys_are_whole_vectors_or_tiles(blocks):
    for keys, plain, tiled in ((40, 48, 64), (77, 80, 96), (300, 160, 160)):
        assert blocks("avx512_bf16", bf16, 49, keys)[1] == plain
        assert blocks("amx", bf16, 49, keys)[1] == tiled


def test_with_amx_all_stays_in_the_first_cache(blocks):
    assert blocks("amx", bf16, 1024, 1024) == (32, 256)
    assert blocks("amx", bf16, 1024, 1024, is_masked=True) == (32, 64)
    assert blocks("amx", bf16, 1024, 1024, 128, is_masked=True) == (32, 128)


@pytest.mark.parametrize("target", ["avx2", "amx"])
def test_little_of_the_derivative_is_computed_in_vain(target: str) -> None:
    config.target = target
    try:
        for extent in (1, 16, 49, 77, 128, 197, 256, 577, 1024):
            x = np.zeros((extent, 64), np.float32)
            given = Operand("q", x.shape, f32, x)
            for window in ((None, None), (None, 0), (40, 40)):
                sizes = gradient_blocks(given, (extent,) * 2, window, is_ragged=False)
                for size in sizes if extent > 1 else sizes[:1]:
                    assert -(-extent // size) * size <= extent * 1.25 + 16
    finally:
        del config.target


@pytest.mark.parametrize("target", ["avx2", "avx512", "amx"])
def test_all_keys_are_a_block_if_their_sums_fit_in_the_cache(target: str) -> None:
    config.target = target
    try:
        cache = find_target(target).machine.l2.size
        for extent in (1, 16, 77, 300, 577, 1025, 1 << 20):
            x = np.zeros((extent, 64), np.float32)
            given = [Operand(name, x.shape, f32, x) for name in "qv"]
            found = whole_gradient_blocks(given[0], given[1], extent)
            if found is None:
                assert extent * 1.25 * 2 * 64 * 4 > cache // 2
                continue
            rows, keys = found
            assert extent <= keys <= extent * 1.25 + 16
            assert keys * 2 * 64 * 4 <= cache // 2
            assert 2 * rows * keys * 4 <= cache // 2
        bfloat = Operand("q", (16, 64), bf16, np.zeros((16, 64), np.uint16))
        assert whole_gradient_blocks(bfloat, bfloat, 16) is None
    finally:
        del config.target
