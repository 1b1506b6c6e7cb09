"""Assembly that combines eight rows: what its instructions say, by NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

from xetl_xegpu.emit.assembly import CODES
from xetl_xegpu.emit.builtins import combined_rows
from xetl_xegpu.simt import KINDS_OF_ROWS

LANES = 16
DECLARED = re.compile(
    r"\.decl (\w+) v_type=G type=f num_elts=(\d+)(?: alias=<\$(\d), 0>)?"
)
PLACE = r"(\w+)\((\d+),(\d+)\)"
CODE = re.compile(
    rf"(\w+) \(M1_NM, (\d+)\) {PLACE}<1> "
    rf"{PLACE}<(\d+);(\d+),(\d+)> {PLACE}<(\d+);(\d+),(\d+)>"
)
MEANING = {"add": np.add, "max": np.fmax, "min": np.fmin}


def read(values: np.ndarray, count: int, place: list[int]) -> np.ndarray:
    """The elements of a region: row, column, then steps of rows, width and step."""
    row, column, down, width, step = place
    at = [
        row * LANES + column + n // width * down + n % width * step
        for n in range(count)
    ]
    return values[at]


@pytest.mark.parametrize("kind", KINDS_OF_ROWS)
def test_each_lane_has_a_row(kind: str) -> None:
    name = KINDS_OF_ROWS[kind]
    rows = np.random.default_rng(1).integers(-9, 9, (8, LANES)).astype(np.float32)
    values, result = dict[str, np.ndarray](), ""
    for line in CODES[combined_rows(name).symbol].strip("{}").strip().splitlines():
        if declared := DECLARED.fullmatch(line):
            variable, size, operand = declared.groups()
            values[variable] = np.full(int(size), np.nan, np.float32)
            if operand == "0":
                result = variable
            elif operand:
                pair = 2 * (int(operand) - 1)
                values[variable][:] = rows[pair : pair + 2].reshape(-1)
            continue
        found = CODE.fullmatch(line)
        assert found is not None
        done, count, target, row, column, left, *more = found.groups()
        numbers = [int(each) if each.isdecimal() else each for each in more]
        first, right, second = numbers[:5], str(numbers[5]), numbers[6:]
        sides = [
            read(values[side], int(count), [int(n) for n in place])
            for side, place in ((left, first), (right, second))
        ]
        start = int(row) * LANES + int(column)
        values[target][start : start + int(count)] = MEANING[done](*sides)
    wanted = MEANING[name].reduce(rows, axis=1)
    assert np.array_equal(values[result], np.tile(wanted, 2))
