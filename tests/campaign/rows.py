"""Statements on long lines: several reductions of one, in one piece or in many.

What a loop over the pieces of a row carries is exact: of floats it is f32 or f64, and
its numbers are small.
"""

from __future__ import annotations

from tests.campaign.parts import Parts
from tests.campaign.values import INTEGERS, Shape, Value

KINDS = {
    "sum": ("0", "{} + {}"),
    "max": ("0", "xetile.maximum({}, {})"),
    "min": ("3", "xetile.minimum({}, {})"),
}
"""Of reductions: what a loop begins with, and how it goes on."""

FORMS = (
    *("{v}", "{v}", "{v}", "{v} * {v}", "{v} - 1", "{v} + {w}", "3 - {v}"),
    "xetile.maximum({v}, 0)",
    "xetile.where({v} < {w}, {v}, 2)",
    "xetile.where({lane} < {end}, {v}, 0)",
    "xetile.where({lane} < {end}, {v} - {w}, 0)",
)
ENDS = ("n * 5", "{c} - n", "X.shape[0]", "X.shape[1]", "Y.shape[1]", "{c} * 2 + n")
FEW = 16
"""Of narrower pieces an array has so many that a test takes too long."""


class Rows(Parts):
    """What reads a line more than once, or adds one up piece by piece."""

    def form(self, v: str, w: str, lane: str) -> str:
        """What is reduced: of ``v`` and ``w``, chosen by where it stands."""
        return self.random.choice(FORMS).format(v=v, w=w, lane=lane, end=self.end())

    def end(self) -> str:
        return self.random.choice(ENDS).format(c=max(self.shapes[0]))

    def lanes(self, extent: int, dim: int) -> str:
        return f"xetile.arange({extent}){('[:, None]', '[None, :]')[dim]}"

    def statistics(self) -> None:
        """Several reductions of one value, and of what is left without one of them."""
        a = self.number()
        if len(a.shape) != 2:
            return
        dim = self.random.choice((0, 1, 1))
        w, lane = self.partner(a), self.lanes(a.shape[dim], dim)
        shape, left = self.one(a.shape, dim), (a.shape[1 - dim],)
        found: list[Value] = []
        for _ in range(self.random.randrange(2, 5)):
            text = f"({self.form(a.name, w.name, lane)})"
            text += f".{self.random.choice(('sum', *KINDS))}({dim}, keepdims=True)"
            found.append(self.result(text, shape, a.dtype))
        if self.random.random() < 0.5:
            less = f"{a.name} - {self.random.choice(found).name}"
            z = self.result(less, a.shape, a.dtype)
            other = self.random.choice((z, a, found[-1])).name
            self.result(f"({z.name} * {other}).sum({dim})", left, a.dtype)
        if self.random.random() < 0.3:
            word = self.random.choice(("any", "all"))
            self.define(f"({a.name} > {w.name}).{word}({dim})", left, "i1")

    def pieces(self) -> None:
        """Loops over an array: one carries what it reduces, the next one stores."""
        base = self.base(2, None) or "X"
        dtype = self.dtypes[base[0]]
        dim, shape = self.random.choice((0, 1, 1)), self.random.choice(self.shapes)
        if dtype == "i1" or self.indent > 2:
            return
        acc = "i64" if dtype in INTEGERS else "f64" if dtype == "f64" else "f32"
        left = self.one(shape, dim)
        kinds = self.random.choices(("sum", *KINDS), k=self.random.choice((1, 1, 2, 3)))
        names = [self.name() for _ in kinds]
        for name, kind in zip(names, kinds):
            first = KINDS[kind][0]
            self.write(f"{name} = xetile.full({left}, {first}, xetile.{acc})")
        w, v = self.any_value(left, acc), self.name()
        self.walk(base, shape, dim)
        self.write(f"{v} = piece.to(xetile.{acc})")
        lane = f"({self.lanes(shape[dim], dim)} + place)"
        for name, kind in zip(names, kinds):
            one = f"({self.form(v, w.name, lane)}).{kind}({dim}, keepdims=True)"
            self.write(f"{name} = {KINDS[kind][1].format(name, one)}")
        self.indent -= 1
        totals = [self.result(name, left, acc) for name in names]
        if self.mode == "one" and self.random.random() < 0.5:
            self.walk(base, shape, dim)
            value = Value(f"(piece.to(xetile.{acc}) - {totals[0].name})", shape, acc)
            if acc != "i64":
                value = Value(self.clamped(value.name, acc), shape, acc)
            self.write(f"xetile.store_tile({self.converted(value, dtype)}, window)")
            self.indent -= 1

    def walk(self, base: str, shape: Shape, dim: int) -> None:
        """The head of a loop over the pieces of an array along ``dim``."""
        extent = f"{base.removesuffix('.T')}.shape[{dim}]"
        if base.endswith(".T"):
            extent = f"{base.removesuffix('.T')}.shape[{1 - dim}]"
        end = self.end() if shape[dim] >= FEW else "n * 5"
        if shape[dim] >= FEW and self.random.random() < 0.6:
            end = extent
        start = self.random.choice(("0", "0", "1", "n", "n * 4"))
        place = ["place", "place"]
        place[1 - dim] = self.offset()
        self.write(f"for place in range({start}, {end}, {shape[dim]}):")
        self.indent += 1
        self.write(f"window = xetile.init_tile({base}, [{', '.join(place)}], {shape})")
        self.write("piece = xetile.load_tile(window)")
