"""Random kernels of one subgroup: loads, products, reductions, loops, stores.

All numbers are small integers, so that no sum depends on its order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

EXTENTS = (1, 8, 12, 16, 16, 32, 32, 32, 48, 64)
NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
}
SUMS = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "i8": "i32"}
"""What products of a type are summed in."""
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "i8": 8, "i32": 32}


@dataclass(frozen=True)
class Value:
    """A vector of the kernel."""

    name: str
    shape: tuple[int, int]
    element: str

    @property
    def type(self) -> str:
        return vector_type(self.shape, self.element)


def vector_type(shape: tuple[int, int], element: str) -> str:
    return f"vector<{shape[0]}x{shape[1]}x{element}>"


@dataclass
class Writer:
    """The text of a kernel, and the arrays it is for."""

    pick: Callable[[Any], Any]
    lowest: int = -2
    """The least offset of a tile: below 0 it may start before its matrix."""
    lines: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str, shape: tuple[int, int], element: str) -> Value:
        value = Value(self.name(), shape, element)
        self.lines.append(f"{value.name} = {text}")
        return value

    def tile(self, shape: tuple[int, int], element: str) -> tuple[str, str]:
        """A tile of a new array, which it may stick out of: its name and type."""
        rows, columns = (n + self.pick(st.integers(-3, 5)) for n in shape)
        rows, columns = max(rows, 1), max(columns, 1)
        rng = np.random.default_rng(self.count)
        data = rng.integers(-3, 4, (rows, columns)).astype(NUMPY[element])
        memory = f"memref<{rows}x{columns}x{element}>"
        array, tile = f"%m{len(self.arrays)}", self.name()
        self.arrays.append(data)
        self.arguments.append(f"{array}: {memory}")
        type_ = f"!xetile.tile<{shape[0]}x{shape[1]}x{element}>"
        places = st.integers(self.lowest, 2)
        row, column = self.pick(places), self.pick(places)
        self.lines.append(
            f"{tile} = xetile.init_tile {array}[{row}, {column}] : {memory} -> {type_}"
        )
        return tile, type_

    def load(self, shape: tuple[int, int], element: str) -> Value:
        tile, type_ = self.tile(shape, element)
        if self.pick(st.booleans()):
            self.lines.append(f"xetile.prefetch_tile {tile} : {type_}")
        number = self.pick(st.sampled_from(["", "{padding = 2 : i32} "]))
        vector = vector_type(shape, element)
        loaded = f"xetile.load_tile {tile} {number}: {type_} -> {vector}"
        return self.emit(loaded, shape, element)

    def store(self, value: Value) -> None:
        tile, type_ = self.tile(value.shape, value.element)
        if self.pick(st.integers(0, 4)) == 0 and value.element in ("f32", "i32"):
            self.emit(
                f"xetile.atomic_rmw_tile <add> {value.name}, {tile} : "
                f"{value.type}, {type_} -> {value.type}",
                value.shape,
                value.element,
            )
            return
        types = f"{value.type}, {type_}"
        self.lines.append(f"xetile.store_tile {value.name}, {tile} : {types}")

    def binary(self, names: tuple[str, str], one: Value, other: Value) -> Value:
        name = names[0] if "f" in one.element else names[1]
        text = f"arith.{name} {one.name}, {other.name} : {one.type}"
        return self.emit(text, one.shape, one.element)

    def constant(self, number: int, like: Value) -> Value:
        text = f"{number}.0" if "f" in like.element else str(number)
        constant = f"arith.constant dense<{text}> : {like.type}"
        return self.emit(constant, like.shape, like.element)

    def clamped(self, value: Value) -> Value:
        low = self.binary(("maximumf", "maxsi"), value, self.constant(-3, value))
        return self.binary(("minimumf", "minsi"), low, self.constant(3, value))

    def cast(self, value: Value, element: str) -> Value:
        """Between types of one kind and another width."""
        wider = BITS[element] > BITS[value.element]
        names = ("extf", "truncf") if "f" in element else ("extsi", "trunci")
        type_ = vector_type(value.shape, element)
        name = names[0] if wider else names[1]
        text = f"arith.{name} {value.name} : {value.type} to {type_}"
        return self.emit(text, value.shape, element)

    def transpose(self, value: Value) -> Value:
        shape = value.shape[::-1]
        text = f"xetile.tile_transpose {value.name}, [1, 0] : {value.type}"
        type_ = vector_type(shape, value.element)
        return self.emit(f"{text} -> {type_}", shape, value.element)

    def reduce(self, value: Value) -> Value:
        """Reduced along a dimension, and spread along it again."""
        dim = self.pick(st.integers(0, 1))
        shape = (1, value.shape[1]) if dim == 0 else (value.shape[0], 1)
        small = vector_type(shape, value.element)
        kind = "maximumf" if "f" in value.element else "maxsi"
        kind = self.pick(st.sampled_from(["add", kind]))
        reduced = self.emit(
            f"xetile.tile_reduce <{kind}>, {value.name} [{dim}] "
            f": {value.type} -> {small}",
            shape,
            value.element,
        )
        return self.emit(
            f"xetile.tile_broadcast {reduced.name} [{dim}] : {small} -> {value.type}",
            value.shape,
            value.element,
        )

    def part(self, value: Value) -> Value:
        """A part taken out, and put into another vector at the same place."""
        extents = [[n for n in EXTENTS if n <= extent] for extent in value.shape]
        rows, columns = (self.pick(st.sampled_from(each)) for each in extents)
        room = value.shape[0] - rows, value.shape[1] - columns
        offsets = [8 * self.pick(st.integers(0, n // 8)) for n in room]
        shape, strides = (rows, columns), "strides = [1, 1]"
        part = vector_type(shape, value.element)
        text = f"{{offsets = {offsets}, sizes = [{rows}, {columns}], {strides}}}"
        taken = self.emit(
            f"vector.extract_strided_slice {value.name} {text} "
            f": {value.type} to {part}",
            shape,
            value.element,
        )
        if self.pick(st.booleans()):
            return taken
        dest = self.load(value.shape, value.element)
        return self.emit(
            f"vector.insert_strided_slice {taken.name}, {dest.name} "
            f"{{offsets = {offsets}, {strides}}} : {part} into {value.type}",
            value.shape,
            value.element,
        )

    def scan(self, value: Value) -> Value:
        text = f"xetile.tile_scan <add>, {value.name} [1] : {value.type}"
        return self.emit(f"{text} -> {value.type}", value.shape, value.element)

    def product(self, value: Value) -> Value:
        columns = self.pick(st.sampled_from(EXTENTS))
        right = self.load((value.shape[1], columns), value.element)
        shape, element = (value.shape[0], columns), SUMS[value.element]
        result = vector_type(shape, element)
        precision = ""
        if value.element == "f32" and self.pick(st.booleans()):
            name = self.pick(st.sampled_from(["tf32", "bf16x3"]))
            precision = f' {{precision = "{name}"}}'
        operands, types = f"{value.name}, {right.name}", f"{value.type}, {right.type}"
        if self.pick(st.booleans()):
            addend = self.load(shape, element)
            operands, types = f"{operands}, {addend.name}", f"{types}, {addend.type}"
        text = f"xetile.tile_mma {operands}{precision} : {types} -> {result}"
        return self.emit(text, shape, element)

    def loop(self, value: Value) -> Value:
        """Carry a value and a tile through a loop, perhaps through a branch too."""
        tile, type_ = self.tile(value.shape, value.element)
        result, moved, carried = self.name(), self.name(), self.name()
        types = f"({type_}, {value.type})"
        self.lines.append(
            f"{result}:2 = scf.for %i = %c0 to %c3 step %c1 iter_args({moved} = "
            f"{tile}, {carried} = {value.name}) -> {types} {{"
        )
        loaded = self.emit(
            f"xetile.load_tile {moved} : {type_} -> {value.type}",
            value.shape,
            value.element,
        )
        inside = Value(carried, value.shape, value.element)
        total = self.clamped(self.binary(("addf", "addi"), inside, loaded))
        if self.pick(st.booleans()):
            total = self.branch(total, loaded)
        following = self.name()
        self.lines += [
            f"{following} = xetile.update_tile_offset {moved}, [1, 2] : {type_}",
            f"scf.yield {following}, {total.name} : {type_}, {value.type}",
            "}",
        ]
        return Value(f"{result}#1", value.shape, value.element)

    def branch(self, value: Value, other: Value) -> Value:
        result = Value(self.name(), value.shape, value.element)
        condition = self.name()
        self.lines += [
            f"{condition} = arith.cmpi eq, %i, %c1 : index",
            f"{result.name} = scf.if {condition} -> ({value.type}) {{",
        ]
        first = self.binary(("subf", "subi"), value, other)
        self.lines.append(f"scf.yield {first.name} : {value.type}\n}} else {{")
        second = self.clamped(value)
        self.lines.append(f"scf.yield {second.name} : {value.type}\n}}")
        return result

    def step(self, value: Value) -> Value:
        """Something done to a value; its numbers stay small."""
        steps = [self.transpose, self.reduce, self.scan, self.part, self.loop]
        if value.element in SUMS:
            steps += [self.product] * 3
        chosen = self.pick(st.sampled_from(steps))
        result = self.clamped(chosen(value))
        others = [e for e in SUMS if ("f" in e) == ("f" in result.element)]
        others = [e for e in others if BITS[e] != BITS[result.element]]
        if others and self.pick(st.booleans()):
            return self.cast(result, self.pick(st.sampled_from(others)))
        return result

    def text(self) -> str:
        body = "\n  ".join(self.lines)
        return f"""
gpu.module @m {{ gpu.func @k({", ".join(self.arguments)}) kernel
    attributes {{xetile.level = "subgroup", xetile.subgroups = array<i64: 1, 1>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  {body}
  gpu.return
}} }}"""


@st.composite
def kernels(draw: Any, lowest: int = -2) -> tuple[str, list[Any]]:
    """The text of a kernel and the arrays to run it on."""
    writer = Writer(draw, lowest)
    shape = draw(st.sampled_from(EXTENTS)), draw(st.sampled_from(EXTENTS))
    value = writer.load(shape, draw(st.sampled_from(sorted(SUMS))))
    kept = [value]
    for _ in range(draw(st.integers(1, 5))):
        value = writer.step(
            draw(st.sampled_from(kept)) if draw(st.booleans()) else value
        )
        kept.append(value)
    writer.store(value)
    if draw(st.booleans()):
        writer.store(draw(st.sampled_from(kept)))
    return writer.text(), writer.arrays
