"""Random kernels give on the CPU what they give on the reference backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generated_values import EXTENTS, NUMPY
from kernel_generator import mode, random_kernel, types
from launching import BF16, copied, laid_out, same

from tests.backends.xegpu import device
from xetl.runtime.config import config

NUMPY_TYPES = NUMPY | {"f16": "float16", "f32": "float32", "f64": "float64"}
LAYOUTS = ("rows", "rows", "columns", "neither", "backwards")
GRIDS = {"one": (1, 1), "programs": (3, 4), "subgroups": (2, 3)}
TARGETS = {"host": "cpu", "avx2": "cpu", "opencl": "xegpu"}
DEVICES = {"opencl"}
LARGEST_ON_A_DEVICE = 33
"""A subgroup holds values as a whole: of 70 rows OpenCL's driver builds for minutes."""
AGAIN = (
    "again with: .venv/bin/python -m pytest -m '' "
    "'tests/backends/cpu/test_fuzz.py::{test}[{seed}]'"
)


def array(rng: Any, dtype: str, shape: Any) -> Any:
    kind = BF16 if dtype == "bf16" else np.dtype(NUMPY_TYPES[dtype])
    if kind.kind == "u":
        found = rng.integers(0, 9, shape).astype(kind)
    else:
        found = rng.integers(-4, 5, shape).astype(kind)
    if kind.kind in "iu" and found.size and rng.random() < 0.5:
        info = np.iinfo(kind)
        wild = rng.integers(info.min, info.max, shape, kind, endpoint=True)
        found = np.where(rng.random(shape) < 0.1, wild, found)
        found.flat[0], found.flat[-1] = info.min, info.max
    layout = rng.choice(LAYOUTS)
    if layout == "backwards":
        turned = tuple(slice(None, None, -1) for _ in shape)
        return np.ascontiguousarray(found[turned])[turned]
    return laid_out(found, layout)


def arrays(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    dtypes = types(seed)
    least = 0 if seed % 7 == 0 else 4
    found = [array(rng, dtypes[n], tuple(rng.integers(least, 60, 2))) for n in "XYZ"]
    # Nobody stores to these:
    if seed % 7 == 0 and mode(seed) != "one" and found[1].size:
        found[0] = np.zeros((0, 5), found[0].dtype)
        found[1] = np.broadcast_to(found[1][:1], (9, found[1].shape[1]))
    found.append(array(rng, dtypes["W"], tuple(rng.integers((2, 3, 3), (4, 40, 40)))))
    found += [array(rng, dtypes[n], tuple(rng.integers(4, 90, 1))) for n in "VU"]
    if seed % 10 == 0:
        found[1] = found[0]  # the very same view twice
    return found


def check(kernel: Any, seed: int, target: str) -> None:
    config.backend, config.target, config.cache = TARGETS[target], target, False
    try:
        grid = GRIDS[mode(seed)]
        for n in (seed % 3, 3 - seed % 2):
            ours = copied([*arrays(seed), n])
            theirs = copied([*arrays(seed), n])
            kernel[grid](*ours)
            del config.target
            kernel[grid](*theirs, backend="reference")
            config.target = target
            for name, one, other in zip("XYZWVU", ours, theirs):
                same(one, other, f"n = {n}, array {name}")
    finally:
        config.assigned = {}


def check_seed(seed: int, test: str, target: str | None = None) -> None:
    largest = LARGEST_ON_A_DEVICE if target in DEVICES else EXTENTS[-1]
    kernel, source = random_kernel(seed, largest=largest)
    try:
        check(kernel, seed, target or ("host", "avx2")[seed // 6 % 2])
    except Exception as error:
        again = AGAIN.format(test=test, seed=seed)
        pytest.fail(
            f"seed {seed}: {type(error).__name__}: {error}\n{source}\n{types(seed)}\n"
            f"{again}"
        )


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels(seed: int) -> None:
    check_seed(seed, "test_random_kernels")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 2000))
def test_more_random_kernels(seed: int) -> None:
    check_seed(seed, "test_more_random_kernels")


@pytest.mark.parametrize("seed", range(4, 10))
def test_random_kernels_on_a_device(seed: int) -> None:
    device.require()
    check_seed(seed, "test_random_kernels_on_a_device", "opencl")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), *range(10, 40)])
def test_more_random_kernels_on_a_device(seed: int) -> None:
    device.require()
    check_seed(seed, "test_more_random_kernels_on_a_device", "opencl")
