"""A pass keeps what a kernel does: run before and after it, compare memory.

Every run is checked for races between programs and between the subgroups of a program,
for shared memory read before it was written, and for barriers that not all subgroups
reach (the reference backend, README).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tests.run_module import run_module
from xetl.dialects.text import read_module

CHECKS = ("race", "uninit")
Truth = Sequence[Any]


def same_meaning(
    module: ModuleOp | str,
    grid: Sequence[int],
    arrays: Sequence[Any],
    passes: Sequence[ModulePass],
    *,
    tolerance: float = 0.0,
    truth: Truth | None = None,
    checks: Sequence[str] = CHECKS,
    look: Callable[[str, ModuleOp], None] | None = None,
) -> list[Any]:
    """Run a kernel before all passes and after each of them; compare its arrays.

    Args:
        module: with one kernel, or its text; it is not changed.
        grid: programs along x, y and z.
        arrays: NumPy arrays and numbers, one an argument; they are not changed.  An
            array that is given twice is one array in the kernel, too.
        passes: in order; each works on what the one before it left.
        tolerance: how far floats may be from ``truth``, relative to its size and
            absolute; 0: every bit is the same (one NaN is like another).
        truth: what the kernel leaves in each argument, in float64, None where that
            is not compared; by default what it leaves before all passes.
        checks: of the reference backend, besides divergent barriers.
        look: is shown the name of each pass and what it left ("" and the start first).

    Returns:
        What the kernel leaves in its arguments in the end.
    """
    left: list[Any] = []
    for name, stage in _stages(module, passes):
        if look is not None:
            look(name, stage)
        left = fresh(arrays)
        try:
            run_module(stage, grid, left, checks=checks)
            truth = left if truth is None else truth
            _compare(left, truth, tolerance)
        except Exception as error:
            error.add_note(f"{f'after {name}' if name else 'before all passes'}")
            raise
    return left


def _stages(
    module: ModuleOp | str, passes: Sequence[ModulePass]
) -> Iterator[tuple[str, ModuleOp]]:
    """The module as it is, and after each pass: one object that changes."""
    changing = read_module(module) if isinstance(module, str) else module.clone()
    changing.verify()
    yield "", changing
    for each in passes:
        each.apply(Context(), changing)
        changing.verify()
        yield each.name, changing


def fresh(arrays: Sequence[Any]) -> list[Any]:
    """Copies, in the same order of memory; an array that occurs twice still does."""
    copies: dict[int, Any] = {}
    for array in arrays:
        if isinstance(array, np.ndarray) and id(array) not in copies:
            copies[id(array)] = array.copy(order="K")
    return [copies.get(id(array), array) for array in arrays]


def _compare(found: Sequence[Any], truth: Truth, tolerance: float) -> None:
    for number, (left, right) in enumerate(zip(found, truth, strict=True)):
        if not isinstance(left, np.ndarray) or right is None:
            continue
        message = f"argument {number}"
        if tolerance:
            np.testing.assert_allclose(
                left.astype(np.float64),
                np.asarray(right, np.float64),
                tolerance,
                tolerance,
                err_msg=message,
            )
        else:
            # Not of what prints alike: -0.0 is not 0.0.
            right = np.asarray(right, left.dtype)
            np.testing.assert_array_equal(left, right, err_msg=message)
            signs = np.signbit(left[left == 0]), np.signbit(right[right == 0])
            assert np.array_equal(*signs), f"{message}: a zero has another sign"
