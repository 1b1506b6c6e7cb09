"""What generated kernels compute with: values whose results every backend agrees on.

Floats hold integers within [-8, 8], so that sums and products are exact in every
type, and what is rounded is clamped: rounding is monotone. Integers hold anything,
since they wrap. Whatever the language leaves unspecified is never written.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import prod

import numpy as np

FLOATS = ("f32", "f64", "f16", "bf16")
ALL_FLOATS = (*FLOATS, "f8e5m2")
"""Also what only arrays bring: f8e4m3 has no room for the sums that are clamped."""

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = (*SIGNED, *UNSIGNED)
WIDE = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64"}
ACCUMULATORS = {**WIDE, "i8": "i32", "u8": "i32"}
EXTENTS = (1, 2, 5, 8, 16, 17, 33, 64, 70)
FLOAT_BITS = {"f8e5m2": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
MOST_OF_A_FACTOR = 1 << 15
"""Elements of the second factor of a product."""

Shape = tuple[int, ...]
NUMPY = {"i1": "bool"} | {
    f"{k}{b}": f"{name}{b}"
    for k, name in (("i", "int"), ("u", "uint"))
    for b in (8, 16, 32, 64)
}

FLOAT_EXPRESSIONS = (
    "{a} + {b}",
    "{a} - {b} * 2",
    "xetile.maximum({a}, {b})",
    "xetile.minimum({a}, -{b})",
    "xetile.abs({a}) * {b}",
    "xetile.where({a} < {b}, {a}, 3 - {a})",
    "{a} * n - {b}",
    "xetile.fma({a}, {b}, {a})",
    "{a} // (xetile.abs({b}) + 1)",
    "{a} % (xetile.abs({b}) + 1)",
    "{a} % -(xetile.abs({b}) + 1)",
    "xetile.round({a} / 2) + {b}",
    "xetile.floor({a} * 0.5) - {b}",
    "xetile.ceil(({a} + {b}) / 4)",
    "{a} ** 2 - {b}",
    "{a} ** 3 + {b}",
    "xetile.sqrt({a} * {a}) - {b}",
    "xetile.exp2(xetile.minimum(xetile.abs({a}), 3)) * {b}",
    "helper({a}, {b})",
    "small({a}) + {b}",
    "{a} + xetile.arange({cols}).to(xetile.{t}) - {b}",
)
"""An integer, exact in every float type once clamped: no bound of errors is needed.

A power of two that is a fraction would be exact, too, but not what is computed of it:
another function makes of the last bit of its argument more than a bit of its result.
"""

QUOTIENT = "{a} / (xetile.abs({b}) + 1)"
MATHEMATICS = (
    "exp({a})",
    "exp2({a}) * {b}",
    "log(xetile.abs({a}) + 1)",
    "log2(xetile.abs({a}) + 3)",
    "sqrt(xetile.abs({a}))",
    "rsqrt(xetile.abs({a}) + 1)",
    "sin({a}) * {b}",
    "cos({a}) * {b}",
    "tanh({a})",
    "erf({a})",
    "sigmoid({a})",
    *("expm1({a})", "log1p(xetile.abs({a}))", "log10(xetile.abs({a}) + 1)"),
    *("cbrt({a})", "tan({a})", "asin({a} / 8)", "acos({a} / 8)", "atan({a})"),
    *("atan2({a}, xetile.abs({b}) + 1)", "sinh({a})", "cosh({a})", "hypot({a}, {b})"),
)
"""Of integers: none of these, times 3 and 0.29 added, is near a tie."""

INTEGER_EXPRESSIONS = (
    "{a} + {b}",
    "{a} - {b} * 3",
    "{a} * {b}",
    "{a} & {b}",
    "{a} | {b}",
    "{a} ^ {b}",
    "~{a} - {b}",
    "{a} // {b}",
    "{a} % {b}",
    "{a} // {k1} + {b}",
    "{a} % {k1} + {b}",
    "({a} << {k}) ^ {b}",
    "({a} >> {k}) + {b}",
    "{a} << ({b} & {most})",
    "{a} >> ({b} & {most})",
    "xetile.maximum({a}, {b})",
    "xetile.minimum({a}, {b})",
    "xetile.abs({a}) - {b}",
    "xetile.where({a} < {b}, {a}, {b} + 3)",
    "-{a} + {b}",
    "{a} ** 2 + {b}",
    "{a} * n + {b}",
    "helper({a}, {b})",
    "small({a}) + {b}",
    "{a} + xetile.arange({cols}).to(xetile.{t}) * {b}",
)
MASKS = ("{a} & {b}", "{a} | {b}", "{a} ^ {b}", "~{a} & {b}", "{a} == {b}")


@dataclass(frozen=True)
class Value:
    """A variable of a generated kernel."""

    name: str
    shape: Shape
    dtype: str


@dataclass
class Writer:
    """Lines of a kernel and the variables in scope where the next one goes."""

    random: random.Random
    lines: list[str] = field(default_factory=list[str])
    values: list[Value] = field(default_factory=list[Value])
    indent: int = 1
    count: int = 0
    shapes: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    known: list[Value] = field(default_factory=list[Value])
    most: int = 400

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def name(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def define(self, expression: str, shape: Shape, dtype: str) -> Value:
        """A variable for a value; of a float it must be a small integer already."""
        value = Value(self.name(), shape, dtype)
        self.write(f"{value.name} = {expression}")
        self.values.append(value)
        self.known.append(value)
        return value

    def clamped(self, expression: str, dtype: str) -> str:
        if dtype in UNSIGNED:
            return f"xetile.minimum({expression}, 8)"
        return f"xetile.maximum(xetile.minimum({expression}, 8), -8)"

    def result(self, expression: str, shape: Shape, dtype: str) -> Value:
        """A variable for what an operation gives: of a float, clamped."""
        if dtype in ALL_FLOATS:
            expression = self.clamped(expression, dtype)
        return self.define(expression, shape, dtype)

    def converted(self, value: Value, dtype: str) -> str:
        """The value in another type; nothing that `.to` leaves open."""
        name, to = value.name, f".to(xetile.{dtype})"
        if value.dtype == dtype:
            return name
        if value.dtype in ALL_FLOATS and dtype in UNSIGNED:
            return f"xetile.abs({name}){to}"
        if value.dtype in INTEGERS and dtype in ALL_FLOATS:
            return self.clamped(name + to, dtype)
        return name + to

    def load(self, shape: Shape, dtype: str | None = None) -> Value:
        raise NotImplementedError

    def any_value(self, shape: Shape | None = None, dtype: str | None = None) -> Value:
        """A variable of a shape and type, made of another one or loaded."""
        fits = [v for v in self.values if shape is None or v.shape == shape]
        found = [v for v in fits if dtype is None or v.dtype == dtype]
        if found and self.random.random() < 0.9:
            return self.random.choice(found)
        if fits and dtype is not None and self.random.random() < 0.7:
            value = self.random.choice(fits)
            return self.define(self.converted(value, dtype), value.shape, dtype)
        return self.load(shape or self.random.choice(self.shapes), dtype)

    def number(self, shape: Shape | None = None) -> Value:
        """A variable that is no mask."""
        value = self.any_value(shape)
        if value.dtype != "i1":
            return value
        dtype = self.random.choice((*FLOATS, *INTEGERS))
        return self.define(self.converted(value, dtype), value.shape, dtype)


class Values(Writer):
    """Statements without memory."""

    def partner(self, value: Value) -> Value:
        """A second operand of the same type, broadcast or not."""
        shapes: list[Shape] = [value.shape] * 3
        if len(value.shape) == 2:
            r, c = value.shape
            shapes += [(r, 1), (1, c), (c,)]
        return self.any_value(self.random.choice(shapes), value.dtype)

    def elementwise(self) -> None:
        self.computed(self.any_value())

    def computed(self, a: Value) -> Value:
        """Of a value and another one that is broadcast, or of its shape."""
        b = self.partner(a)
        choices = MASKS if a.dtype == "i1" else INTEGER_EXPRESSIONS
        if a.dtype in ALL_FLOATS:
            choices = FLOAT_EXPRESSIONS
        bits = int(a.dtype[1:]) if a.dtype in INTEGERS else 1
        expression = self.random.choice(choices).format(
            a=a.name,
            b=b.name,
            cols=a.shape[-1],
            t=a.dtype,
            k=self.random.randrange(bits),
            k1=self.random.choice((1, 2, 3, 7, 16)),
            most=bits - 1,
        )
        return self.result(expression, a.shape, a.dtype)

    def mathematics(self) -> None:
        a = self.any_value(None, self.random.choice(("f32", "f64")))
        b = self.partner(a)
        function = self.random.choice(MATHEMATICS).format(a=a.name, b=b.name)
        if self.random.random() < 0.2:
            function = QUOTIENT.format(a=a.name, b=b.name)
            self.result(f"xetile.round({function} * 3 + 0.29)", a.shape, a.dtype)
            return
        self.result(f"xetile.round(xetile.{function} * 3 + 0.29)", a.shape, a.dtype)

    def integer_mathematics(self) -> None:
        a = self.number()
        if a.dtype in INTEGERS:
            function = self.random.choice(("exp2", "tanh", "sigmoid", "erf"))
            inside = f"xetile.{function}({self.clamped(a.name, a.dtype)})"
            self.result(f"xetile.round({inside} * 3 + 0.29)", a.shape, "f32")
            half = f"xetile.floor({self.clamped(a.name, a.dtype)} / 2)"
            self.result(half, a.shape, "f32")

    def mask(self) -> None:
        a = self.number()
        b = self.partner(a)
        sign = self.random.choice(("<", "<=", ">", ">=", "==", "!="))
        mask = self.define(f"{a.name} {sign} {b.name}", a.shape, "i1")
        if self.random.random() < 0.6:
            c = self.number(a.shape)
            other = self.random.choice(
                (self.any_value(a.shape, c.dtype).name, "n", "1")
            )
            choice = f"xetile.where({mask.name}, {c.name}, {other})"
            self.define(choice, c.shape, c.dtype)

    def conversion(self) -> None:
        a = self.any_value()
        dtype = self.random.choice((*FLOATS, *INTEGERS, "i1"))
        self.define(self.converted(a, dtype), a.shape, dtype)

    def promotion(self) -> None:
        """Two vectors of two types."""
        a = self.number()
        b = self.number(a.shape)
        kinds = [v.dtype in ALL_FLOATS for v in (a, b)]
        names = [a.name, b.name]
        if all(kinds):
            if {a.dtype, b.dtype} == {"f16", "bf16"}:
                return
            dtype = max(a.dtype, b.dtype, key=lambda t: (FLOAT_BITS[t], t))
        elif any(kinds):
            dtype = a.dtype if kinds[0] else b.dtype
            if not kinds[0]:
                names[0] = self.clamped(a.name, a.dtype)
            if not kinds[1]:
                names[1] = self.clamped(b.name, b.dtype)
        else:
            if "u64" in (a.dtype, b.dtype) and {a.dtype, b.dtype} & set(SIGNED):
                return
            common = np.result_type(*(np.dtype(NUMPY[v.dtype]) for v in (a, b)))
            dtype = next(k for k, v in NUMPY.items() if v == common.name)
        sign = self.random.choice("+-*")
        self.result(f"{names[0]} {sign} {names[1]}", a.shape, dtype)

    def reduce(self) -> None:
        a = self.any_value()
        if len(a.shape) == 1:
            self.used_up()
            return
        r, c = a.shape
        dim = self.random.randrange(2)
        shape = (1, c) if dim == 0 else (r, 1)
        kinds = ["add", "max", "min"]
        if a.dtype in INTEGERS:
            kinds += ["mul", "and", "or", "xor"]
        kind = self.random.choice(("and", "or") if a.dtype == "i1" else kinds)
        sugar = {"add": "sum", "max": "max", "min": "min", "mul": "prod"}
        if kind in sugar and self.random.random() < 0.4:
            rank1 = self.random.random() < 0.5
            keep = "" if rank1 else ", keepdims=True"
            text = f"{a.name}.{sugar[kind]}({dim}{keep})"
            self.result(text, (a.shape[1 - dim],) if rank1 else shape, a.dtype)
        else:
            text = f'xetile.tile_reduce("{kind}", {a.name}, [{dim}])'
            self.result(text, shape, a.dtype)

    def signs(self) -> None:
        """A product of floats that are -1, 0 or 1."""
        a = self.any_value(dtype=self.random.choice(FLOATS))
        if len(a.shape) == 2:
            unit = f"xetile.maximum(xetile.minimum({a.name}, 1), -1)"
            self.define(f"({unit}).prod(1)", (a.shape[0],), a.dtype)

    def scan(self) -> None:
        a = self.number()
        dim = self.random.randrange(len(a.shape))
        if self.random.random() < 0.5:
            self.result(f"{a.name}.cumsum({dim})", a.shape, a.dtype)
        elif len(a.shape) == 2:
            kind = self.random.choice(("argmax", "argmin"))
            self.define(f"{a.name}.{kind}({dim})", (a.shape[1 - dim],), "i32")

    def collective(self) -> None:
        """What goes through shared memory: all subgroups of a program reach it."""
        a = self.number()
        if self.indent > 1 or self.mode == "subgroups" or prod(a.shape) > self.most:
            return
        dim = self.random.randrange(len(a.shape))
        b = self.any_value(a.shape, a.dtype)
        extent, name, kind = a.shape[dim], a.name, self.random.randrange(9)
        if kind == 0 and a.dtype not in ("f64", "i64", "u64"):
            count = self.random.randrange(1, extent + 1)
            shape = tuple(count if d == dim else n for d, n in enumerate(a.shape))
            best = self.define(
                f"xetile.topk({name}, {count}, {dim})[0]", shape, a.dtype
            )
            if count % 2:
                first = f"xetile.topk({best.name}, 1, {dim})[1]"
                self.define(first, self.one(shape, dim), "i32")
            else:
                self.define(f"xetile.argsort({best.name}, {dim})", shape, "i32")
        elif kind == 1:
            shape = tuple(2 * n if d == dim else n for d, n in enumerate(a.shape))
            self.define(f"xetile.cat({name}, {b.name}, {dim})", shape, a.dtype)
        elif kind == 2:
            index = f"{self.converted(b, 'i32')} % {extent}"
            self.define(f"xetile.gather({name}, {index}, {dim})", a.shape, a.dtype)
        elif kind == 3:
            word = self.random.choice(("reduce", "associative_scan"))
            text = f"xetile.{word}({name}, {dim}, lambda p, q: xetile.maximum(p, q))"
            left = tuple(n for d, n in enumerate(a.shape) if d != dim)
            whole = word == "associative_scan" or not left
            if whole and word == "reduce":
                return
            if word == "associative_scan" and self.random.random() < 0.5:
                last = "(m | n, xetile.where(n, q, p))"
                text = (
                    f"xetile.associative_scan(({name} > 2, {name}), {dim},"
                    f" lambda m, p, n, q: {last})[1]"
                )
            self.define(text, a.shape if whole else left, a.dtype)
        else:
            scan = self.random.choice(("cummax", "cummin", "cumsum"))
            texts = (
                f"xetile.flip({name}, {dim})",
                f"xetile.sort({name}, {dim}, {self.random.random() < 0.5})",
                f"xetile.{scan}({name}, {dim}, reverse=True)",
            )
            self.result(self.random.choice(texts), a.shape, a.dtype)

    @staticmethod
    def one(shape: Shape, dim: int) -> Shape:
        """The shape with one element along a dim."""
        return tuple(1 if d == dim else n for d, n in enumerate(shape))

    def used_up(self) -> None:
        """A scalar of a whole value, in the next one."""
        a = self.number()
        b = self.any_value(None, a.dtype)
        scalar = f"{a.name}.{self.random.choice(('max', 'min', 'sum'))}()"
        self.result(f"{b.name} + {scalar}", b.shape, a.dtype)

    def transpose(self) -> None:
        a = self.any_value()
        if len(a.shape) == 2:
            form = self.random.choice(("{}.T", "xetile.tile_transpose({}, [1, 0])"))
            self.define(form.format(a.name), a.shape[::-1], a.dtype)

    def reshape(self) -> None:
        a = self.any_value()
        size = int(np.prod(a.shape))
        shapes: list[Shape] = [(1, size), (size, 1), (size,), a.shape, a.shape[::-1]]
        shape = self.random.choice(shapes)
        self.define(f"{a.name}.reshape({shape})", shape, a.dtype)

    def rank(self) -> None:
        """From rank 1 to rank 2; or broadcast."""
        a = self.any_value()
        if len(a.shape) == 1:
            (n,) = a.shape
            place, shape = self.random.choice(
                (("[:, None]", (n, 1)), ("[None, :]", (1, n)))
            )
            self.define(a.name + place, shape, a.dtype)
        elif 1 in a.shape:
            dim = a.shape.index(1)
            shape = [*a.shape]
            shape[dim] = self.random.choice((1, 5, 17))
            text = f"xetile.tile_broadcast({a.name}, [{dim}], {tuple(shape)})"
            self.define(text, tuple(shape), a.dtype)

    def packed(self) -> None:
        """There and back again."""
        a = self.any_value(self.random.choice(self.shapes))
        blocks = [
            self.random.choice([d for d in range(1, n + 1) if n % d == 0])
            for n in a.shape
        ]
        text = f"xetile.tile_unpack(xetile.tile_pack({a.name}, {blocks}))"
        self.define(text, a.shape, a.dtype)

    def product(self) -> None:
        a = self.any_value(self.random.choice(self.shapes))
        dtype = self.random.choice(tuple(ACCUMULATORS))
        other = self.random.choice(("i8", "u8")) if dtype in ("i8", "u8") else dtype
        r, k = a.shape
        n = self.random.choice([n for n in (r, k, 1, 17) if k * n <= MOST_OF_A_FACTOR])
        flip = self.random.random() < 0.3
        b = self.any_value((n, k) if flip else (k, n))
        parts = [f"({self.converted(a, dtype)})", f"({self.converted(b, other)})"]
        parts[1] += ".T" if flip else ""
        if "f8e5m2" in (a.dtype, b.dtype) and dtype in ("f32", "bf16"):
            dtype = other = "f8e5m2"
            parts = [f"({self.converted(each, dtype)})" for each in (a, b)]
            parts[1] += ".T" if flip else ""
        accumulator = ACCUMULATORS.get(dtype, "f32")
        if self.random.random() < 0.4:
            parts.append(self.converted(self.any_value((r, n)), accumulator))
        if dtype == "f32" and self.random.random() < 0.2:
            parts.append(f'precision="{self.random.choice(("tf32", "bf16x3"))}"')
        text = f"xetile.tile_mma({', '.join(parts)})"
        self.result(text, (r, n), accumulator)
