"""Modules in the style of the released dialect, against NumPy in float64.

A module says in comments how it is launched and what it gives:

    // launch: NAME (GRID) (SUBGROUPS)
    // A: 32x64 f16 integers          an argument; numbers, then `T` or `padded` for
    // n: 5                           other strides, a scalar, or `address of A`
    // expect C = A @ B               NumPy, arguments are float64 or int64
    // tolerance: 1e-3                of the largest element expected; 0 without it

There may be several launches, each with its arguments and expectations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import oracles
import pytest

import xetl
from tests.backends.xegpu import device

HERE = Path(__file__).parent
MODULES = sorted(HERE.glob("*.mlir"))
BACKENDS = ("reference", "cpu", "xegpu")
HUGE = ("sg_reduce_rank3",)
"""Modules whose one subgroup holds more than a GPU has registers: 128 KiB here.
OpenCL's driver for CPUs takes 20 s and more: `make test-slow` has them."""

DTYPES: dict[str, Any] = {
    **{"f16": "f2", "f32": "f4", "f64": "f8", "bf16": ml_dtypes.bfloat16},
    **{"i1": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "index": "i8"},
    **{"u8": "u1", "tf32": "f4"},
}
LAUNCH = re.compile(r"// launch: (\S+) \(([\d, ]+)\)(?: \(([\d, ]+)\))?")
ARGUMENT = re.compile(r"// (\w+): (.+)")
ADDRESS = "address of "
EXPECT = re.compile(r"// expect (\w+) = (.+)")


class Launch(NamedTuple):
    kernel: str
    grid: tuple[int, ...]
    subgroups: tuple[int, ...] | None
    arguments: dict[str, str]
    expected: dict[str, str]
    tolerance: float


def launches_of(text: str) -> list[Launch]:
    found: list[Launch] = []
    for line in text.splitlines():
        if match := LAUNCH.match(line):
            grid, team = (_ints(part) for part in match.groups()[1:])
            assert grid is not None
            found.append(Launch(match[1], grid, team, {}, {}, 0.0))
        elif not found:
            continue
        elif match := EXPECT.match(line):
            found[-1].expected[match[1]] = match[2]
        elif match := re.match(r"// tolerance: (\S+)", line):
            found[-1] = found[-1]._replace(tolerance=float(match[1]))
        elif match := ARGUMENT.match(line):
            found[-1].arguments[match[1]] = match[2]
    return found


def _ints(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else tuple(map(int, re.findall(r"\d+", text)))


def argument(text: str, seed: int) -> Any:
    words = text.split()
    if len(words) == 1:
        return float(words[0]) if "." in words[0] else int(words[0])
    shape = [int(extent) for extent in words[0].split("x") if extent]
    values = numbers(words[2], shape, seed).astype(DTYPES[words[1]])
    if "T" in words[3:]:
        return np.asfortranarray(values)
    if "padded" in words[3:]:  # rows with a gap of 8 elements behind each
        wide = np.zeros([*shape[:-1], shape[-1] + 8], values.dtype)
        wide[..., : shape[-1]] = values
        return wide[..., : shape[-1]]
    return values


def numbers(how: str, shape: list[int], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    ways = {
        "zeros": lambda: np.zeros(shape),
        "ones": lambda: np.ones(shape),
        "iota": lambda: np.arange(count).reshape(shape),
        "integers": lambda: rng.integers(-4, 5, shape),
        "bits": lambda: rng.integers(0, 2, shape),
        "permutation": lambda: rng.permutation(count).reshape(shape),
        "uniform": lambda: rng.uniform(-1, 1, shape),
        "positive": lambda: rng.uniform(0.5, 2, shape),
    }
    return ways[how]()


def wide(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return value.astype("i8" if value.dtype.kind in "iub" else "f8")


def run(library: Any, launch: Launch, backend: str) -> None:
    given = {
        name: argument(text, seed)
        for seed, (name, text) in enumerate(launch.arguments.items())
        if not text.startswith(ADDRESS)
    }
    names = vars(oracles) | {"np": np} | {k: wide(v) for k, v in given.items()}
    wanted = {k: eval(text, names) for k, text in launch.expected.items()}
    place = launch.grid if launch.subgroups is None else (launch.grid, launch.subgroups)
    values = [
        given[name] if name in given else given[text.removeprefix(ADDRESS)].ctypes.data
        for name, text in launch.arguments.items()
    ]
    library[launch.kernel][place](*values, backend=backend)
    assert wanted
    for name, expected in wanted.items():
        found = wide(given[name])
        largest = np.abs(expected).max() if launch.tolerance else 0
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=launch.tolerance * largest
        )


def cases() -> Iterator[Any]:
    """Each module on each backend."""
    for path in MODULES:
        for backend in BACKENDS:
            is_huge = backend == "xegpu" and path.stem in HUGE
            marks = [pytest.mark.slow] if is_huge else []
            yield pytest.param(path, backend, id=f"{path.stem}-{backend}", marks=marks)


@pytest.mark.parametrize(("path", "backend"), list(cases()))
def test_numbers(path: Path, backend: str) -> None:
    device.require(backend)
    text = path.read_text("utf-8")
    library = xetl.load_mlir(text)
    launches = launches_of(text)
    assert launches
    for launch in launches:
        run(library, launch, backend)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_canonical_form_is_stable(path: Path) -> None:
    once = str(xetl.load_mlir(path.read_text("utf-8")))
    assert str(xetl.load_mlir(once)) == once
