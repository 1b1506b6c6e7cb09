"""Text of a random kernel at workgroup level: names, types, arrays, maps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import ml_dtypes
import numpy as np

from xetl.language.distribution import spreads

T = TypeVar("T")
NUMPY = {
    **{"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16},
    **{"i32": np.int32, "i8": np.int8},
}
EXACT = {"f32": 1 << 22, "f16": 1 << 11, "bf16": 1 << 8, "i32": 0, "i8": 0}
"""Up to where all integers are exact; 0: it wraps, which is exact too."""


class Choices(Protocol):
    """Where the decisions come from: a seed, or Hypothesis."""

    def pick(self, options: Sequence[T]) -> T: ...


class Seeded:
    """The same decisions for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]


@dataclass(frozen=True)
class Value:
    """A vector of the text; floats are integers of at most ``bound``, never negative.

    So sums in any order are exact, and there is no negative zero.
    """

    name: str
    shape: tuple[int, int]
    element: str
    bound: int = 4

    @property
    def type(self) -> str:
        return vector(self.shape, self.element)

    @property
    def is_float(self) -> bool:
        return self.element in ("f32", "f16", "bf16")


def vector(shape: Sequence[int], element: str) -> str:
    return f"vector<{'x'.join(map(str, shape))}x{element}>"


@dataclass(frozen=True)
class Tile:
    """A tile of the text, and the largest number that lies there."""

    name: str
    shape: tuple[int, int]
    element: str
    encoding: str = ""
    bound: int = 4
    order: Sequence[str] = ()

    @property
    def type(self) -> str:
        rows, columns = self.shape
        return f"!xetile.tile<{rows}x{columns}x{self.element}{self.encoding}>"


@dataclass
class Writer:
    """What has been written so far."""

    choices: Choices
    grid: tuple[int, int]
    subgroups: int
    seed: int
    lines: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    depth: int = 0
    names: int = 0

    # Decisions -----------------------------------------------------------------------

    def pick(self, options: Sequence[T]) -> T:
        return self.choices.pick(options)

    def chance(self, one_in: int) -> bool:
        return self.pick(range(one_in)) == 1

    def shape(self) -> tuple[int, int]:
        return self.pick(EXTENTS), self.pick(EXTENTS)

    # Text ----------------------------------------------------------------------------

    def name(self, prefix: str = "v") -> str:
        self.names += 1
        return f"%{prefix}{self.names}"

    def line(self, text: str) -> None:
        self.lines.append("  " * (self.depth + 3) + text)

    def emit(self, value: Value, text: str) -> Value:
        """Write ``value = text`` and let later operations use the value."""
        named = replace(value, name=self.name())
        self.line(f"{named.name} = {text}")
        self.values.append(named)
        return named

    def index(self, text: str) -> str:
        name = self.name("i")
        self.line(f"{name} = {text}")
        return name

    def constant(self, number: int) -> str:
        return self.index(f"arith.constant {number} : index")

    def splat(self, like: Value, number: int) -> Value:
        literal = f"{number}.0" if like.is_float else str(number)
        made = replace(like, bound=abs(number))
        return self.emit(made, f"arith.constant dense<{literal}> : {like.type}")

    @contextmanager
    def body(self):
        """What is made inside cannot be used behind it."""
        before = list(self.values)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self.values = before

    # Maps ----------------------------------------------------------------------------

    def map(self, shape: Sequence[int]) -> str | None:
        """A legal map of ``shape``: in turns, shared, or both; None if none is found.

        Not each number of subgroups can spread each shape, but sharing always can.
        """
        layouts = [(n, self.subgroups // n) for n in divisors(self.subgroups)]
        layout = self.pick(layouts)
        sizes = [
            [d for d in divisors(extent) if spreads(extent, count, d)]
            for extent, count in zip(shape, layout)
        ]
        data = [self.pick(options) for options in sizes]
        return f"#xetile.wg_map<sg_layout = {list(layout)}, sg_data = {data}>"

    def maybe_map(self, shape: Sequence[int], one_in: int = 2) -> str | None:
        return self.map(shape) if self.chance(one_in) else None

    def with_map(self, shape: Sequence[int], one_in: int = 4, key: str = "map") -> str:
        """`` {map = ...}``, or nothing."""
        found = self.maybe_map(shape, one_in)
        return f" {{{key} = {found}}}" if found else ""

    # Memory --------------------------------------------------------------------------

    def argument(self, array: Any, layout: str = "") -> str:
        """Another array the kernel takes; its name."""
        name = f"%A{len(self.arguments)}"
        element = next(k for k, v in NUMPY.items() if array.dtype == v)
        extents = "x".join(map(str, array.shape))
        self.arguments.append(f"{name}: memref<{extents}x{element}{layout}>")
        self.arrays.append(array)
        return name

    def numbers(self, shape: Sequence[int], element: str, top: int = 4) -> Any:
        """Small numbers: exact in every type, and so are their sums."""
        rng = np.random.default_rng((self.seed, len(self.arrays)))
        low = 0 if EXACT[element] else -top
        return rng.integers(low, top + 1, tuple(shape)).astype(NUMPY[element])

    def place(self, shape: Sequence[int]) -> tuple[str, str]:
        """Where the block of this program begins."""
        rows, columns = self.constant(shape[0]), self.constant(shape[1])
        return (
            self.index(f"arith.muli %py, {rows} : index"),
            self.index(f"arith.muli %px, {columns} : index"),
        )

    def extents(self, shape: Sequence[int]) -> tuple[int, int]:
        """Rows and columns for the blocks of all programs; the last may be cut."""
        full = (self.grid[1] * shape[0], self.grid[0] * shape[1])
        cut = [self.pick((0, 0, 1, extent // 2)) for extent in shape]
        return (max(1, full[0] - cut[0]), max(1, full[1] - cut[1]))

    def encoding(self, shape: Sequence[int], *more: str) -> str:
        """The encoding of a tile: perhaps a map, and what else there is."""
        found = self.maybe_map(shape)
        parts = [*more, *([f"wg_map = {found}"] if found else [])]
        return f", #xetile.tile_attr<{', '.join(parts)}>" if parts else ""

    def tile(
        self, array: str, tile: Tile, place: Sequence[str], memref: str | None = None
    ) -> Tile:
        """Describe a tile of ``array``."""
        named = replace(tile, name=self.name("t"))
        type_ = memref or self._memref(array)
        at = ", ".join(place)
        self.line(
            f"{named.name} = xetile.init_tile {array}[{at}] : {type_} -> {named.type}"
        )
        return named

    def _memref(self, array: str) -> str:
        found = next(a for a in self.arguments if a.startswith(f"{array}:"))
        return found.partition(": ")[2]

    def input(self, shape: tuple[int, int], element: str) -> Tile:
        """A tile of an array that is only read; it may hang over the edges."""
        name, order = self._matrix(shape, element)
        tile = Tile("", shape, element, self.encoding(shape, *order))
        place = self.place(shape)
        if self.chance(4):
            shift = self.constant(self.pick((-1, 1, shape[0])))
            place = (self.index(f"arith.addi {place[0]}, {shift} : index"), place[1])
        return self.tile(name, tile, place)

    def output(self, shape: tuple[int, int], element: str) -> Tile:
        """A tile of an array of its own, where no other program writes."""
        name, order = self._matrix(shape, element)
        tile = Tile("", shape, element, self.encoding(shape, *order), order=order)
        return self.tile(name, tile, self.place(shape))

    def _matrix(self, shape: tuple[int, int], element: str) -> tuple[str, list[str]]:
        """Another argument, and the order of its tiles if it is column-major."""
        extents = self.extents(shape)
        array = self.numbers(extents, element)
        if not self.chance(4):
            return self.argument(array), []
        layout = f", strided<[1, {extents[0]}]>"
        return self.argument(np.asfortranarray(array), layout), ["order = [0, 1]"]

    def load(self, tile: Tile) -> Value:
        """The value of a tile, padded perhaps."""
        padding = ""
        if self.chance(3):
            literal = "3.0" if EXACT[tile.element] else "3"
            padding = f" {{padding = {literal} : {tile.element}}}"
        value = Value("", tile.shape, tile.element, tile.bound)
        text = f"xetile.load_tile {tile.name}{padding} : {tile.type} -> {value.type}"
        return self.emit(value, text)

    def store(self, value: Value, tile: Tile) -> None:
        self.line(
            f"xetile.store_tile {value.name}, {tile.name} : {value.type}, {tile.type}"
        )


EXTENTS = (1, 2, 4, 8, 12, 16, 32)


def divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
