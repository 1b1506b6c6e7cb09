"""What runs into a barrier that some do not reach was refused before it ran."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context

from tests.run_module import run_module
from xetl.dialects.text import read_module
from xetl.errors import CheckError, IRError
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.check_barriers import CheckBarriersPass
from xetl.transforms.cse import CSEPass

HEAD = """gpu.module @m {
  gpu.func @k(%in: memref<?xindex>, %n: index) kernel attributes {
      xetile.level = "subgroup", xetile.subgroups = array<i64: 1, 3>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %me = gpu.subgroup_id : index
"""
TAIL = """    gpu.return
  }
}
"""


class Writer:
    """A random kernel of branches, loops and barriers; numbers stay below 4."""

    def __init__(self, seed: int, ids: bool) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.values = ["%c0", "%c1", "%c2", "%n", *["%me"] * (2 * ids)]
        self.block(2)

    @property
    def text(self) -> str:
        return HEAD + "\n".join(self.lines) + "\n" + TAIL

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, operation: str) -> str:
        name = self.name()
        self.lines.append(f"{name} = {operation} : index")
        return name

    def any(self) -> str:
        return self.random.choice(self.values)

    def small(self, value: str) -> str:
        return self.emit(f"arith.remui {value}, %c4")

    def block(self, depth: int) -> None:
        """Statements; what is defined in them is not seen outside."""
        outside = list(self.values)
        for _ in range(self.random.randint(1, 4)):
            kinds = [self.number, self.loaded, self.barrier]
            if depth:
                kinds += [self.branch, self.loop, self.own_range, self.repeat]
            kind = self.random.choice(kinds)
            if kind in kinds[:3]:
                kind()
            else:
                kind(depth - 1)  # pyright: ignore[reportCallIssue]
        self.values = outside

    def number(self) -> None:
        op = self.random.choice(("addi", "muli", "subi", "maxui"))
        made = self.emit(f"arith.{op} {self.any()}, {self.any()}")
        self.values.append(self.small(made))

    def loaded(self) -> None:
        name = self.name()
        self.lines.append(f"{name} = memref.load %in[{self.any()}] : memref<?xindex>")
        self.values.append(name)

    def barrier(self) -> None:
        self.lines.append("gpu.barrier")

    def branch(self, depth: int) -> None:
        condition, result = self.name(), self.name()
        kind = self.random.choice(("eq", "ult"))
        self.lines += [
            f"{condition} = arith.cmpi {kind}, {self.any()}, {self.any()} : index",
            f"{result} = scf.if {condition} -> (index) {{",
        ]
        for end in ("} else {", "}"):
            self.block(depth)
            self.lines += [f"scf.yield {self.any()} : index", end]
        self.values.append(result)

    def loop(self, depth: int) -> None:
        self.loop_over(self.any(), self.any(), depth)

    def own_range(self, depth: int) -> None:
        """All run it equally often, whatever it begins with."""
        begin = self.emit(f"arith.muli {self.any()}, {self.any()}")
        end = self.emit(f"arith.addi {begin}, {self.any()}")
        self.loop_over(begin, end, depth)

    def loop_over(self, begin: str, end: str, depth: int) -> None:
        result, counter, carried = self.name(), self.name(), self.name()
        self.lines.append(
            f"{result} = scf.for {counter} = {begin} to {end} step %c1"
            f" iter_args({carried} = {self.any()}) -> (index) {{"
        )
        outside = list(self.values)
        self.values += [carried, self.small(counter)]
        self.block(depth)
        self.lines += [f"scf.yield {self.any()} : index", "}"]
        self.values = [*outside, result]

    def repeat(self, depth: int) -> None:
        """A loop whose test reads what the body made."""
        i, x, j, y = (self.name() for _ in range(4))
        result, more, last = self.name(), self.name(), self.name()
        types = "(index, index) -> (index, index)"
        self.lines += [
            f"{result}:2 = scf.while ({i} = %c0, {x} = {self.any()}) : {types} {{",
            f"{more} = arith.cmpi ult, {i}, {x} : index",
            f"scf.condition({more}) {i}, {x} : index, index",
            "} do {",
            f"^bb0({j}: index, {y}: index):",
        ]
        outside = list(self.values)
        self.values += [j, y]
        self.block(depth)
        self.lines += [
            f"{last} = arith.addi {j}, %c1 : index",
            f"scf.yield {last}, {self.any()} : index, index",
            "}",
        ]
        self.values = [*outside, f"{result}#0"]


def refused(text: str) -> bool:
    module = read_module(text)
    for each in (CanonicalizePass(), CSEPass()):
        each.apply(Context(), module)
    try:
        CheckBarriersPass().apply(Context(), module)
    except IRError as error:
        return error.code == "X0707"
    return False


def hangs(text: str, numbers: list[int], n: int) -> bool:
    try:
        run_module(read_module(text), (1,), (np.array(numbers, np.int64), n))
    except CheckError as error:
        return error.code == "X0825"
    return False


NUMBERS = st.lists(st.integers(0, 3), min_size=4, max_size=4)
SEEDS = st.integers(0, 1 << 32)


@given(SEEDS, NUMBERS, st.integers(0, 3))
def test_what_hangs_was_refused(seed: int, numbers: list[int], n: int) -> None:
    text = Writer(seed, ids=True).text
    assert refused(text) or not hangs(text, numbers, n), text


@given(SEEDS)
def test_without_an_id_nothing_is_refused(seed: int) -> None:
    text = Writer(seed, ids=False).text
    assert not refused(text), text


@pytest.mark.slow
def test_the_kernels_are_of_all_kinds() -> None:
    """Of 200 many hang, many are refused, and many are neither."""
    found = [Writer(seed, ids=True).text for seed in range(200)]
    outcomes = [(refused(text), hangs(text, [0, 1, 2, 3], 3)) for text in found]
    assert outcomes.count((True, True)) > 20
    assert outcomes.count((False, False)) > 60
    assert outcomes.count((False, True)) == 0
