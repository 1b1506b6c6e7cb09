"""Loops of texts over tiles: what runs as programs gives what the order gave."""

import random

import numpy as np
import pytest

from xetl import load_mlir

EXTENT = 64
MATRIX = f"memref<{EXTENT}x{EXTENT}xf32>"


class Text:
    """A nest of loops that loads tiles of A and B, and stores tiles that may meet."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.shape = self.pick((8, 8), (4, 8), (8, 4), (2, 16))
        rows, columns = self.shape
        self.vector = f"vector<{rows}x{columns}xf32>"
        self.tile = f"!xetile.tile<{rows}x{columns}xf32>"

    def pick(self, *choices):
        return self.random.choice(choices)

    def let(self, expression: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def number(self) -> str:
        counter = self.pick(*self.counters)
        word = self.pick("addi", "addi", "addi", "subi", "", "")
        other = self.pick(*self.counters, "%c1", "%c2")
        return self.let(f"arith.{word} {counter}, {other} : index") if word else counter

    def offset(self, extent: int) -> str:
        times = self.pick(extent, extent, extent, 1, 2, 4)
        return self.let(f"arith.muli {self.number()}, %c{times} : index")

    def at(self, place: tuple[str, str]) -> str:
        matrix, offsets = self.pick("%A", "%B", "%B"), ", ".join(place)
        return self.let(
            f"xetile.init_tile {matrix}[{offsets}] : {MATRIX} -> {self.tile}"
        )

    def generate(self) -> str:
        depth = self.random.randint(1, 4)
        for number in range(depth):
            first, last, step = self.pick(
                (0, 8, 1), (0, 4, 1), (0, 16, 4), (1, 8, 2), (0, 8, 8), (0, 2, 1)
            )
            counter = f"%i{number}"
            bounds = f"%c{first} to %c{last} step %c{step}"
            self.lines.append(f"scf.for {counter} = {bounds} {{")
            self.counters.append(counter)
        place = self.offset(self.shape[0]), self.offset(self.shape[1])
        others = [place, place, (place[0], self.offset(self.shape[1]))]
        values = [
            self.let(f"xetile.load_tile {tile} : {self.tile} -> {self.vector}")
            for tile in [self.at(self.pick(*others)) for _ in range(2)]
        ]
        total = self.let(f"arith.addf {', '.join(values)} : {self.vector}")
        half = self.let(f"arith.mulf {total}, %half : {self.vector}")
        for where in (place, self.pick(*others)):
            tile = self.at(where)
            self.lines.append(
                f"xetile.store_tile {half}, {tile} : {self.vector}, {self.tile}"
            )
        numbers = [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 4, 8, 16)]
        constant = f"%half = arith.constant dense<0.5> : {self.vector}"
        head = f"func.func @entry(%A: {MATRIX}, %B: {MATRIX}) {{"
        body = [*numbers, constant, *self.lines, *["}"] * depth, "return"]
        return "\n".join([head, *body, "}"])


@pytest.mark.parametrize("seed", range(24))
def test_as_in_order(seed):
    source, rng = Text(seed).generate(), np.random.default_rng(seed)
    ours = [rng.random((EXTENT, EXTENT), np.float32) for _ in range(2)]
    wanted = [each.copy() for each in ours]
    kernel = load_mlir(source)["entry"]
    kernel[1](*wanted, backend="reference")
    kernel[1](*ours, backend="cpu")
    assert all(map(np.array_equal, ours, wanted)), source


def test_some_run_as_programs_and_some_in_order():
    texts = [load_mlir(Text(seed).generate())["entry"] for seed in range(24)]
    found = [each.ir("materialize-grid", backend="cpu") for each in texts]
    grids = ["to (%grid_x" in each for each in found]
    assert 4 <= sum(grids) <= 20


def test_trips_that_do_nothing():
    text = "func.func @entry() { %c = arith.constant 1 : index\n BODY return }"
    loop = "scf.forall (%i, %j) in (4, 4) { %k = arith.addi %i, %c : index }\n"
    load_mlir(text.replace("BODY", loop))["entry"][1](backend="cpu")
