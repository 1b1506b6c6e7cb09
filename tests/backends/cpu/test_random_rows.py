"""Reductions of pieces of rows, so wide that loops have several vectors at once.

Random ones give what the reference backend gives: of arrays that begin anywhere and go
on behind a piece, several of one piece, of what is chosen by its columns, and of what
another one gave.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

DTYPES: dict[str, Any] = {
    **{"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32},
    **{"bf16": ml_dtypes.bfloat16, "i8": np.int8},
}
COMPUTED = {"f64": "f64", "i32": "i32", "i8": "i32"}
"""What is computed in, if not f32."""

VALUES = (
    *("v", "v * v", "v - 1", "v + w", "-v", "xetile.maximum(v, 0)"),
    "xetile.where(xetile.arange({width})[None, :] < N - c, v, 0)",
)
KINDS = {
    "sum": ("0", "{} + {}"),
    "max": ("-30000", "xetile.maximum({}, {})"),
    "min": ("30000", "xetile.minimum({}, {})"),
}
"""What a loop begins with, and how it goes on."""

HEAD = """
from xetl import xetile
from xetl.xetile import constexpr, f32, f64, i32

@xetile.kernel
def kernel(X, W, Sums, Y, N: constexpr, FIRST: constexpr):
    r = xetile.program_id(0) * {height}
    w = xetile.load_tile(xetile.init_tile(W, [0, FIRST], (1, {width}))).to({acc})
"""


class Size(NamedTuple):
    """Of a tile, and the dtype that is computed in."""

    height: int
    width: int
    acc: str

    def load(self) -> str:
        """What loads a piece."""
        tile = f"xetile.init_tile(X, [r, c], ({self.height}, {self.width}))"
        return f"v = xetile.load_tile({tile}).to({self.acc})"

    def store(self, what: str, to: str, column: object, columns: int) -> str:
        """What stores a value."""
        tile = f"xetile.init_tile({to}, [r, {column}], ({self.height}, {columns}))"
        return f"xetile.store_tile({what}, {tile})"


def body_of(rg: Random, size: Size) -> tuple[list[str], int]:
    """The lines behind ``HEAD``, and how many sums they store."""
    kinds = [rg.choice(["sum", *KINDS]) for _ in range(rg.randint(1, 4))]
    values = [rg.choice(VALUES).format(width=size.width) for _ in kinds]
    found = [f"({v}).{k}(1, keepdims=True)" for k, v in zip(kinds, values)]
    count = len(kinds)
    if rg.random() < 0.4:
        shape = f"({size.height}, 1)"
        starts = [f"xetile.full({shape}, {KINDS[k][0]}, {size.acc})" for k in kinds]
        lines = [f"a{i} = {start}" for i, start in enumerate(starts)]
        lines += [f"for c in range(FIRST, N, {size.width}):", f"    {size.load()}"]
        for i, (kind, one) in enumerate(zip(kinds, found)):
            lines.append(f"    a{i} = {KINDS[kind][1].format(f'a{i}', one)}")
    else:
        lines = ["c = FIRST", size.load()]
        lines += [f"a{i} = {one}" for i, one in enumerate(found)]
        if rg.random() < 0.5:
            factor = rg.choice(["z", "2", "v"])
            lines.append(f"z = {rg.choice(values)} - a{rg.randrange(count)}")
            lines.append(f"a{count} = (z * {factor}).sum(1, keepdims=True)")
            count += 1
            whole = f"z + a{rg.randrange(count)}"
            lines.append(size.store(whole, "Y", "FIRST", size.width))
    return lines + [size.store(f"a{i}", "Sums", i, 1) for i in range(count)], count


def placed(rg: Random, rows: int, columns: int, dtype: Any) -> Any:
    """Small numbers that begin anywhere, with others before, between and behind."""
    pitch, first = columns + rg.choice([0, 0, 1, 5, 16]), rg.choice([0, 1, 2, 4, 8, 16])
    memory = np.full(rows * pitch + 64, 77.0).astype(dtype)
    found = memory[first : first + rows * pitch].reshape(rows, pitch)[:, :columns]
    drawn = np.random.default_rng(rg.randrange(1 << 32)).integers(-4, 5, found.shape)
    found[...] = drawn.astype(dtype)
    return found


def check(seed: int, folder: Path) -> None:
    rg = Random(seed)
    name, width = rg.choice([*DTYPES]), rg.choice([256, 512, 768, 777, 1024, 2048])
    size = Size(rg.choice([1, 1, 1, 2, 4]), width, COMPUTED.get(name, "f32"))
    lines, count = body_of(rg, size)
    text = HEAD.format(**size._asdict()) + "".join(f"    {each}\n" for each in lines)
    path = folder / f"kernel_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    rows = rg.randint(1, 9)
    columns = rg.choice([width, width + rg.randint(1, 700), 3 * width, width - 30])
    first = rg.choice([0, 0, 1, 4, 16, 17, rg.randint(0, 200)])
    x, w = (placed(rg, n, columns + 8, DTYPES[name]) for n in (rows, 1))
    results: list[tuple[Any, Any]] = []
    for backend in ("reference", "cpu"):
        sums = np.zeros((rows, count), DTYPES[size.acc])
        y = np.zeros((rows, columns), DTYPES[size.acc])
        grid = (-(-rows // size.height),)
        given = (x[:, :columns], w, sums, y, columns, first)
        module.kernel[grid](*given, backend=backend)
        results.append((sums, y))
    for expected, found in zip(*results):
        np.testing.assert_allclose(found, expected, 1e-3, 1e-3, err_msg=text)


@pytest.mark.parametrize("seed", range(12))
def test_random_rows(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 300))
def test_more_random_rows(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)
