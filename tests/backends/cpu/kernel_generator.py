"""Random kernels as source text: integer-valued, so that every backend agrees exactly.

Values are kept within [-8, 8] after each step; sums of a row then stay exact in every
element type. Kernels of one program load and store anywhere in three arrays, so that
accesses overlap; those of many programs store only their own part of the third.
"""

from __future__ import annotations

import linecache
import random
from dataclasses import dataclass, field
from typing import Any

from xetl import xetile

EXTENTS = (1, 2, 5, 8, 16, 17, 33, 64, 70)
ARRAYS = ("X", "Y", "Z")
Shape = tuple[int, int]


@dataclass
class Generator:
    """Writes one kernel; `values` are the variables in scope and their shapes."""

    random: random.Random
    programs: bool = False
    multiplies: bool = False
    lines: list[str] = field(default_factory=list[str])
    values: dict[str, Shape] = field(default_factory=dict[str, Shape])
    tiles: dict[str, Shape] = field(default_factory=dict[str, Shape])
    indent: int = 1
    count: int = 0

    @property
    def cast(self) -> str:
        """What makes an operand of a product: nothing, where the arrays' type does."""
        return "" if self.multiplies else ".to(xetile.f32)"

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def name(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def define(self, expression: str, shape: Shape) -> str:
        name = self.name()
        self.write(f"{name} = {expression}")
        self.values[name] = shape
        return name

    def shape(self) -> Shape:
        return self.random.choice(self.shapes)

    def offset(self) -> str:
        number = self.random.choice((0, 0, 0, 1, 2, -1, -3, 7))
        kinds = [f"{number}", f"n + {number}", f"{number}"]
        if self.programs:
            kinds += [f"row + {number}", f"col + {number}"]
        return self.random.choice(kinds)

    def array(self) -> str:
        """One to read; programs read no array that another one writes."""
        return self.random.choice(ARRAYS[:2] if self.programs else ARRAYS)

    def any_value(self, shape: Shape | None = None) -> str:
        """A variable of a shape, made if there is none."""
        names = [n for n, s in self.values.items() if shape is None or s == shape]
        if names and self.random.random() < 0.9:
            return self.random.choice(names)
        return self.load(shape or self.shape())

    def generate(self, statements: int) -> str:
        r, c, k = (self.random.choice(EXTENTS) for _ in range(3))
        self.shapes = [(r, c), (r, c), (c, r), (r, 1), (1, c), (r, k), (k, c)]
        if self.programs:
            self.write(
                f"row, col = xetile.program_id(0) * {r}, xetile.program_id(1) * {c}"
            )
        self.load((r, c))
        for _ in range(statements):
            self.statement()
        if self.programs:
            tile = f"xetile.init_tile(Z, [row, col], {(r, c)})"
            self.write(
                f"xetile.store_tile({self.any_value((r, c))}.to(Z.dtype), {tile})"
            )
        else:
            for name in list(self.values)[-3:]:
                self.store(name)
        head = "def generated(X, Y, Z, n):"
        return "\n".join([head, *self.lines]) + "\n"

    def statement(self) -> None:
        kinds = [
            *(["elementwise"] * 5),
            *(["load", "reduce", "store"] * 2),
            *("transpose", "product", "reshape", "gather", "moved", "used_up", "gemm"),
            *(["loop", "branch"] if self.indent < 3 else []),
        ]
        kind = self.random.choice(kinds)
        if not (self.programs and kind == "store"):
            getattr(self, kind)()

    def load(self, shape: Shape | None = None) -> str:
        shape = shape or self.shape()
        array = self.array()
        place = f"[{self.offset()}, {self.offset()}]"
        padding = self.random.choice(("", ", padding=1", ", padding=-2"))
        tile = f"xetile.init_tile({array}, {place}, {shape})"
        return self.define(f"xetile.load_tile({tile}{padding})", shape)

    def store(self, name: str | None = None) -> None:
        name = name or self.any_value()
        array = self.random.choice(ARRAYS)
        place = f"[{self.offset()}, {self.offset()}]"
        tile = f"xetile.init_tile({array}, {place}, {self.values[name]})"
        self.write(f"xetile.store_tile({name}.to({array}.dtype), {tile})")

    def elementwise(self) -> None:
        name = self.any_value()
        shape = self.values[name]
        r, c = shape
        other = self.any_value(self.random.choice([shape, shape, (r, 1), (1, c)]))
        expression = self.random.choice(
            [
                "{a} + {b}",
                "{a} - {b} * 2",
                "xetile.maximum({a}, {b})",
                "xetile.minimum({a}, -{b})",
                "xetile.abs({a}) * {b}",
                "xetile.where({a} < {b}, {a}, 3 - {a})",
                "{a} * n - {b}",
                "{a} + xetile.arange({cols})[None, :].to(X.dtype) - {b}",
            ]
        ).format(a=name, b=other, cols=c)
        self.clamped(expression, shape)

    def clamped(self, expression: str, shape: Shape, cast: str = "") -> str:
        """A cast comes last: a float outside of an integer type is unspecified."""
        bounds = f"xetile.maximum(xetile.minimum({expression}, 8), -8){cast}"
        return self.define(bounds, shape)

    def reduce(self) -> None:
        name = self.any_value()
        r, c = self.values[name]
        dim = self.random.randrange(2)
        kind = self.random.choice(("add", "max", "min"))
        shape = (1, c) if dim == 0 else (r, 1)
        self.clamped(f'xetile.tile_reduce("{kind}", {name}, [{dim}])', shape)

    def transpose(self) -> None:
        name = self.any_value()
        r, c = self.values[name]
        self.define(f"{name}.T", (c, r))

    def reshape(self) -> None:
        name = self.any_value()
        r, c = self.values[name]
        shape = self.random.choice([(c, r), (1, r * c), (r * c, 1), (r, c)])
        self.define(f"{name}.reshape({shape})", shape)

    def product(self) -> None:
        name = self.any_value()
        r, k = self.values[name]
        n = self.random.choice((r, k, 1, 17))
        other = self.any_value((k, n))
        both = f"{name}{self.cast}, {other}{self.cast}"
        self.clamped(f"xetile.tile_mma({both})", (r, n), ".to(X.dtype)")

    def gemm(self) -> None:
        """A K loop over two arrays, either of them transposed."""
        (m, n), k = self.shape(), self.random.choice((1, 8, 17, 32))
        acc, count, step = self.name("v"), self.count, self.random.choice((k, k, 5))
        start = self.random.choice(("0", "0", "n", "-2"))
        row = self.random.choice(("0", "row" if self.programs else "n"))
        col = self.random.choice(("0", "col" if self.programs else "1"))
        self.write(
            f"{acc} = xetile.full({(m, n)}, {self.random.randrange(3)}, xetile.f32)"
        )
        self.write(f"for k{count} in range({start}, {self.array()}.shape[1], {step}):")
        self.indent += 1
        names: list[str] = []
        for place, shape in (
            ((row, f"k{count}"), (m, k)),
            ((f"k{count}", col), (k, n)),
        ):
            flip = self.random.choice(("", "", ".T"))
            order = place[::-1] if flip else place
            size = shape[::-1] if flip else shape
            tile = f"xetile.init_tile({self.array()}, [{', '.join(order)}], {size})"
            names.append(f"xetile.load_tile({tile}){flip}{self.cast}")
        self.write(f"{acc} = xetile.tile_mma({', '.join(names)}, {acc})")
        self.indent -= 1
        self.values[acc] = (m, n)
        self.clamped(acc, (m, n), ".to(X.dtype)")
        del self.values[acc]

    def gather(self) -> None:
        name = self.any_value()
        shape = self.values[name]
        index = f"({name} * 3).to(xetile.i32) + n"
        tile = f"xetile.init_tile({self.array()}[n], {index})"
        self.define(f"xetile.load_gather({tile}, padding=2)", shape)

    def moved(self) -> None:
        """A tile that a loop moves: loaded, changed and stored on its way."""
        shape, array = self.shape(), self.array()
        tile, total = self.name("t"), self.any_value(shape)
        place = f"[{self.offset()}, {self.offset()}]"
        self.write(f"{tile} = xetile.init_tile({array}, {place}, {shape})")
        kept = f"v{self.count}k"
        self.write(f"{kept} = {total}")
        self.write(f"for {self.name('i')} in range(n):")
        self.indent += 1
        added = f"{kept} + xetile.load_tile({tile})"
        self.write(f"{kept} = xetile.maximum(xetile.minimum({added}, 8), -8)")
        if not self.programs and self.random.random() < 0.5:
            self.write(f"xetile.store_tile({kept}, {tile})")
        step = self.random.choice(("[1, 0]", "[0, 1]", "[-1, 2]", "[2, -3]"))
        self.write(f"{tile} = xetile.update_tile_offset({tile}, {step})")
        self.indent -= 1
        self.values[kept] = shape

    def used_up(self) -> None:
        """A scalar of a whole value, in the next one."""
        name, other = self.any_value(), self.any_value()
        scalar = f"{name}.{self.random.choice(('max', 'min', 'sum'))}()"
        self.clamped(f"{other} + {scalar}", self.values[other])

    def loop(self) -> None:
        counter = self.name("i")
        trips = self.random.choice(("n", "2", "n + 1"))
        self.write(f"for {counter} in range({trips}):")
        self.body(self.random.randrange(1, 4))

    def branch(self) -> None:
        condition = self.random.choice(("n > 1", "n == 0", "n < 2"))
        self.write(f"if {condition}:")
        self.body(self.random.randrange(1, 3))
        if self.random.random() < 0.6:
            self.write("else:")
            self.body(self.random.randrange(1, 3))

    def body(self, statements: int) -> None:
        """Statements on values of their own, some given to variables from outside."""
        outside = dict(self.values)
        self.indent += 1
        for _ in range(statements):
            self.statement()
        given = self.random.sample(list(outside), min(len(outside), 2))
        pairs = [(n, self.any_value(outside[n])) for n in given]
        names = ", ".join(name for name, _ in pairs)
        self.write(f"{names} = {', '.join(value for _, value in pairs)}")
        self.indent -= 1
        self.values = outside


def random_kernel(
    seed: int, multiplies: bool = False, statements: int = 12
) -> tuple[Any, str]:
    """A kernel and its source, which tracebacks and the front end can read.

    Odd seeds make kernels of many programs; ``multiplies``: elements of the arrays
    may be multiplied into f32 as they are.
    """
    make = Generator(random.Random(seed), seed % 2 == 1, multiplies)
    source = make.generate(statements)
    file = f"<kernel {seed}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"xetile": xetile}
    exec(compile(source, file, "exec"), names)
    return xetile.kernel(names["generated"]), source
