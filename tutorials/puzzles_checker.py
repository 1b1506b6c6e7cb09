"""The checks of `puzzles.py`: arguments, right results, and one line about yours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from xetl.errors import XetlError

Case = tuple[list[Any], np.ndarray]
"""Arguments of a kernel, which writes the last one, and its right result."""

rng = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    """Small integers, so that each sum is exact."""
    return rng.integers(-9, 10, shape).astype(np.float32)


def case(*arguments: Any, result: np.ndarray) -> Case:
    """Return a case whose output is full of NaN or -77, so that a gap is noticed."""
    unwritten = np.nan if result.dtype.kind == "f" else -77
    return [*arguments, np.full(result.shape, unwritten, result.dtype)], result


def scale_and_shift() -> Case:
    x = numbers(1000)
    return case(x, result=2 * x + 1)


def outer_sum() -> Case:
    x, y = numbers(50), numbers(70)
    return case(x, y, result=x[:, None] + y)


def row_means() -> Case:
    x = numbers(37, 64)
    return case(x, result=x.mean(1))


def transpose() -> Case:
    x = numbers(45, 83)
    return case(x, result=x.T.copy())


def second_difference() -> Case:
    x = numbers(500)
    wide = np.pad(x, 1)
    return case(x, result=wide[:-2] - 2 * x + wide[2:])


def product() -> Case:
    a, b = numbers(70, 100), numbers(100, 50)
    return case(a, b, result=a @ b)


def softmax() -> Case:
    x = 40 * numbers(30, 100)
    e = np.exp(x - x.max(1, keepdims=True))
    return case(x, result=e / e.sum(1, keepdims=True))


def running_sums() -> Case:
    x = numbers(1000)
    return case(x, result=np.cumsum(x, dtype=np.float32))


def permute_rows() -> Case:
    x, order = numbers(60, 40), rng.permutation(60)
    return case(x, order, result=x[order])


def count_values() -> Case:
    x = rng.integers(0, 16, 1000).astype(np.int32)
    arguments, result = case(x, result=np.bincount(x, minlength=16).astype(np.int32))
    arguments[-1][:] = 0
    return arguments, result


def moving_average() -> Case:
    x, result, last = numbers(256), np.empty(256, np.float32), 0.0
    for i, each in enumerate(x):
        last = result[i] = 0.5 * last + 0.5 * each
    return case(x, result=result)


def attention() -> Case:
    q, k, v = numbers(1, 32) / 8, numbers(200, 32) / 2, numbers(200, 16)
    e = np.exp(q @ k.T - (q @ k.T).max())
    return case(q, k, v, result=e / e.sum() @ v)


CASES: list[Callable[[], Case]] = [
    scale_and_shift,
    outer_sum,
    row_means,
    transpose,
    second_difference,
    product,
    softmax,
    running_sums,
    permute_rows,
    count_values,
    moving_average,
    attention,
]


def verdict(kernel: Any) -> str:
    """`right`, or what is wrong, in one line."""
    name = kernel.fn.__name__
    lines, start = inspect.getsourcelines(kernel.fn)
    for number, line in enumerate(lines, start):
        if "..." in line:
            return f"line {number} still has its `...`"
    arguments, expected = next(each for each in CASES if each.__name__ == name)()
    try:
        kernel(*arguments)
    except XetlError as error:
        message = str(error).splitlines()[0].partition("]: ")[2]
        return f"line {error.line}: {message}"
    found = arguments[-1]
    unwritten = np.isnan(found) if found.dtype.kind == "f" else found == -77
    for what, places in (
        ("never written, or no number", unwritten),
        ("{found}, should be {expected}", ~np.isclose(found, expected, 1e-4, 1e-4)),
    ):
        if places.any():
            at = tuple(int(each) for each in np.argwhere(places)[0])
            text = what.format(found=found[at], expected=expected[at])
            where = ", ".join(map(str, at))
            return f"[{where}] is {text} ({places.mean():.0%} of all are like that)"
    return "right"


def check(kernel: Any) -> bool:
    """Print the verdict on a kernel; its name says which puzzle it is."""
    name = kernel.fn.__name__
    number = [each.__name__ for each in CASES].index(name) + 1
    said = verdict(kernel)
    print(f"puzzle {number:2}, {name}: {said}")
    return said == "right"
