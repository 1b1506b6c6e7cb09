"""Every block that the table of builtins can name, on opencl:cpu against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.backends.xegpu.emit.block_kernels import (
    LOADS,
    PREFETCHES,
    STORES,
    load_kernel,
    name_of,
    prefetch_kernel,
    store_kernel,
)
from tests.backends.xegpu.emit.on_opencl import Program, i64, parsed
from xetl_xegpu.emit.module import llvm_text
from xetl_xegpu.simt import BlockShape

HEIGHT, PITCH, WIDTH, MARGIN = 37, 192, 128, 128
"""Rows; bytes from row to row and in a row; elements around, where all is 0."""


def matrix(bits: int) -> np.ndarray:
    """Random numbers, from a multiple of 64 bytes on."""
    rng = np.random.default_rng(bits)
    memory = np.empty(HEIGHT * PITCH + 64, np.uint8)
    start = -memory.ctypes.data % 64
    raw = memory[start : start + HEIGHT * PITCH].reshape(HEIGHT, PITCH)
    raw[:] = rng.integers(0, 256, raw.shape, np.uint8)
    return raw.view(f"u{bits // 8}")


def is_refused(x: int, bits: int, *, by_lanes: bool) -> bool:
    """Whether hardware takes no message there: columns are not on 4 bytes."""
    return not by_lanes and x * bits % 32 != 0


def places(bits: int) -> list[tuple[int, int]]:
    """Inside, over each edge and corner, and far away."""
    columns = WIDTH * 8 // bits
    xs = (0, 3, -1, -5, columns - 3, columns - 1, columns + 1, -70)
    ys = (0, 4, -1, -9, HEIGHT - 2, HEIGHT + 3, -40)
    return [(x, y) for x in xs for y in ys] + [
        (-(2**30), 2**30),
        (2**30, -(2**30)),
        (2**30, 0),
    ]


def block_at(image: np.ndarray, shape: BlockShape, x: int, y: int) -> np.ndarray:
    """(rows, count * columns) of the matrix, 0 outside."""
    wide = np.zeros((shape.rows, shape.columns * shape.count), image.dtype)
    columns = WIDTH // image.itemsize
    for row in range(shape.rows):
        for column in range(wide.shape[1]):
            i, j = y + row, x + column
            if 0 <= i < HEIGHT and 0 <= j < columns:
                wide[row, column] = image[i, j]
    return wide


def items_of(block: np.ndarray, shape: BlockShape) -> np.ndarray:
    """Items by lane: the words of `xetl_xegpu.simt.block_ops`, in NumPy."""
    parts = np.split(block, shape.count, axis=1)
    item = np.dtype(f"u{shape.item_bits // 8}")
    if shape.mode == "transform":
        factor = 32 // shape.bits
        pairs = [
            part.reshape(-1, factor, 16).transpose(0, 2, 1).copy().view(item)[..., 0]
            for part in parts
        ]
        return np.concatenate(pairs)
    if shape.mode == "transpose":
        parts = [part.T for part in parts]
    rows = [np.ascontiguousarray(part).reshape(-1).view(item) for part in parts]
    return np.concatenate(rows).reshape(-1, 16)


CASES = [
    (mode, bits)
    for mode, found in LOADS.items()
    for bits in sorted({shape.bits for shape in found})
]


@pytest.mark.parametrize("by_lanes", [False, True])
@pytest.mark.parametrize(("mode", "bits"), CASES)
def test_loads(mode: str, bits: int, by_lanes: bool):
    chosen = [shape for shape in LOADS[mode] if shape.bits == bits]
    program = Program("\n".join(load_kernel(s, by_lanes=by_lanes) for s in chosen))
    image = matrix(bits)
    for shape in chosen:
        out = np.zeros((shape.items, 16), f"u{shape.item_bits // 8}")
        for x, y in places(bits):
            surface = (image, *map(i64, (WIDTH, HEIGHT, PITCH, x, y)))
            program(name_of(shape), *surface, out)
            expected = items_of(block_at(image, shape, x, y), shape)
            if is_refused(x, bits, by_lanes=by_lanes):
                expected[:] = np.iinfo(expected.dtype).max
            np.testing.assert_array_equal(out, expected, f"{shape} at {x}, {y}")


@pytest.mark.parametrize("by_lanes", [False, True])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_stores(bits: int, by_lanes: bool):
    chosen = [shape for shape in STORES if shape.bits == bits]
    program = Program("\n".join(store_kernel(s, by_lanes=by_lanes) for s in chosen))
    rng = np.random.default_rng(bits)
    for shape in chosen:
        block = rng.integers(1, 200, (shape.rows, shape.columns), f"u{bits // 8}")
        given = items_of(block, shape)
        for x, y in places(bits):
            image = matrix(bits)
            expected = image.copy()
            surface = (image, *map(i64, (WIDTH, HEIGHT, PITCH, x, y)))
            program(name_of(shape), *surface, given)
            stored = not is_refused(x, bits, by_lanes=by_lanes)
            for row, column in np.ndindex(block.shape):
                i, j = y + row, x + column
                if stored and 0 <= i < HEIGHT and 0 <= j < WIDTH * 8 // bits:
                    expected[i, j] = block[row, column]
            np.testing.assert_array_equal(image, expected, f"{shape} at {x}, {y}")


@pytest.mark.parametrize("offset", [1, 3])
def test_lanes_move_what_no_message_may(offset: int):
    """A base between elements, a pitch that goes up, sizes beyond 32 bits."""
    shape = BlockShape(16, 8, 16)
    load = load_kernel(shape, by_lanes=True)
    program = Program(load)
    raw = np.random.default_rng(offset).integers(0, 256, 4096, np.uint8)
    start, pitch = 2048 + offset, -98
    here = raw.ctypes.data + start
    out = np.zeros((shape.items, 16), np.uint16)
    surface = [i64(each) for each in (here, 2**40, 2**36, pitch, 5, 2)]
    program(name_of(shape), *surface, out)
    first = [start + pitch * (2 + row) + 10 for row in range(8)]
    expected = [np.frombuffer(raw.tobytes()[at : at + 32], np.uint16) for at in first]
    np.testing.assert_array_equal(out, np.array(expected))


def strided(bits: int, step: int) -> tuple[Any, Any]:
    """A matrix as `matrix` makes it with columns ``step`` apart, and what it is in."""
    image = matrix(bits)
    whole = np.zeros((image.shape[0], image.shape[1] * abs(step)), image.dtype)
    view = whole[:, ::step]
    view[...] = image
    return view, whole


def surface_of(view: Any, x: int, y: int) -> list[Any]:
    """The arguments of a kernel with a step; the surface is `matrix`'s."""
    base = view.__array_interface__["data"][0]
    down, right = view.strides
    return [i64(each) for each in (right, base, WIDTH, HEIGHT, down, x, y)]


@pytest.mark.parametrize("step", [1, 3, -2])
@pytest.mark.parametrize(("mode", "bits"), CASES)
def test_loads_of_columns_that_are_apart(mode: str, bits: int, step: int):
    shape = max((s for s in LOADS[mode] if s.bits == bits), key=lambda s: s.items)
    program = Program(load_kernel(shape, by_lanes=True, has_step=True))
    view, _ = strided(bits, step)
    out = np.zeros((shape.items, 16), f"u{shape.item_bits // 8}")
    for x, y in places(bits):
        program(name_of(shape), *surface_of(view, x, y), out)
        expected = items_of(block_at(view, shape, x, y), shape)
        np.testing.assert_array_equal(out, expected, f"{shape} at {x}, {y}")


@pytest.mark.parametrize("step", [2, -3])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_stores_of_columns_that_are_apart(bits: int, step: int):
    shape = max((s for s in STORES if s.bits == bits), key=lambda s: s.items)
    program = Program(store_kernel(shape, by_lanes=True, has_step=True))
    rng = np.random.default_rng(bits)
    block = rng.integers(1, 200, (shape.rows, shape.columns), f"u{bits // 8}")
    given = items_of(block, shape)
    for x, y in places(bits):
        view, whole = strided(bits, step)
        expected, between = view.copy(), whole.copy()
        program(name_of(shape), *surface_of(view, x, y), given)
        for row, column in np.ndindex(block.shape):
            i, j = y + row, x + column
            if 0 <= i < HEIGHT and 0 <= j < WIDTH * 8 // bits:
                expected[i, j] = block[row, column]
        between[:, ::step] = expected
        np.testing.assert_array_equal(whole, between, f"{shape} at {x}, {y}")


def test_narrow_items_move_as_words():
    """Ten times faster to build on opencl:cpu; a GPU's compiler needs none of it."""
    shape = BlockShape(16, 8, 16)
    module = parsed(load_kernel(shape))
    assert "<8 x i16>" not in llvm_text(module, "opencl")
    assert "call spir_func <8 x i16>" in llvm_text(module, "pvc")


def test_there_are_the_blocks_that_products_need():
    for rows in (8, 16, 32):
        assert BlockShape(16, rows, 16, 2) in LOADS["plain"]
        assert BlockShape(8, rows, 32) in LOADS["plain"]
        assert BlockShape(16, rows, 16, 1, "transform") in LOADS["transform"]
        assert BlockShape(8, rows, 16, 4, "transform") in LOADS["transform"]
    assert BlockShape(32, 8, 8) in LOADS["plain"]
    assert BlockShape(32, 16, 8, 1, "transpose") in LOADS["transpose"]
    assert BlockShape(32, 8, 16) in STORES


@pytest.mark.slow
def test_prefetches_do_nothing_that_can_be_seen():
    program = Program(prefetch_kernel(PREFETCHES))
    image = matrix(16)
    before = image.copy()
    program("prefetches", image, *map(i64, (WIDTH, HEIGHT, PITCH, -3, 2**29)))
    np.testing.assert_array_equal(image, before)
