"""Statements at the edges: far outside, divided by zero, several values in a loop."""

from __future__ import annotations

from tests.campaign.memory import Memory
from tests.campaign.values import ALL_FLOATS, INTEGERS, SIGNED, Shape, Value

FAR = ("1000000", "-1000000", "1 << 31", "-(1 << 31)", "(1 << 32) + n", "-(1 << 33)")
BINARY = ("+", "-", "*", "&", "^", "//", "//", "%", "%")


class Edges(Memory):
    """What other statements reach seldom or never."""

    def distance(self) -> str:
        kinds = (*FAR, "0", "n", "-3", "X.shape[0]")
        return self.random.choice(kinds)

    def far_tile(self) -> tuple[str, Value]:
        """A tile that sticks out, or is far outside; and what loading it gives."""
        shape: Shape = self.random.choice(self.shapes)
        if self.random.random() < 0.2:
            shape = shape[1:]
        base = self.base(len(shape), None) or "X"
        places = [self.distance() for _ in shape]
        if self.random.random() < 0.5:
            text = f"xetile.init_tile({base}, [{', '.join(places)}], {shape})"
        else:
            steps = f"[{', '.join(places)}]"
            text = f"xetile.update_tile_offset({self.tile(base, shape)}, {steps})"
        return text, Value("", shape, self.dtypes[base[0]])

    def prefetch(self) -> None:
        """Of what is far outside, of what a loop moves, of the same tile twice."""
        text, _ = self.far_tile()
        locality = self.random.choice(("", "", ", locality=1"))
        if self.indent < 3 and self.random.random() < 0.5:
            self.write(f"for {self.name('i')} in range(0, {self.trips()}):")
            self.indent += 1
            outside = list(self.values)
            if self.random.random() < 0.5:
                self.loaded()
            self.write(f"xetile.prefetch_tile({text}{locality})")
            self.indent, self.values = self.indent - 1, outside
        else:
            self.write(f"xetile.prefetch_tile({text}{locality})")

    def trips(self) -> str:
        return self.random.choice(("n", "2", "n + 1"))

    def far(self) -> None:
        """Load what is far outside, or store there."""
        text, found = self.far_tile()
        if self.mode == "one" and self.random.random() < 0.4:
            value = self.any_value(found.shape)
            cast = self.converted(value, found.dtype)
            self.write(f"xetile.store_tile({cast}, {text})")
            return
        padding = self.random.choice(("", ", padding=3"))
        padding = "" if found.dtype == "i1" else padding
        # Of floats: another program may add to U.
        self.result(f"xetile.load_tile({text}{padding})", found.shape, found.dtype)

    def nested(self) -> None:
        """An expression of integers: broadcast, divided by what is computed."""
        a = self.number()
        if a.dtype in ALL_FLOATS:
            dtype = self.random.choice(INTEGERS)
            a = self.define(self.converted(a, dtype), a.shape, dtype)
        value = self.define(self.tree(a, 2, a.name), a.shape, a.dtype)
        if self.mode == "one" and self.random.random() < 0.5:
            self.store(value)

    def direct(self) -> None:
        """What is computed is stored as it is, to a transposed view or another one."""
        name = self.random.choice("XYZ") if self.mode == "one" else "Z"
        shape, dtype = self.shapes[0], self.dtypes[name]
        a = self.any_value(shape, dtype)
        if dtype in INTEGERS and self.random.random() < 0.6:
            sign = self.random.choice(BINARY)
            b = self.partner(a)
            text = f"({a.name} {sign} {b.name})"
        else:
            text = self.computed(a).name
        if self.mode != "one":
            self.own(Value(text, shape, dtype))
            return
        base = name + self.random.choice(("", ".T", ".T"))
        self.write(f"xetile.store_tile({text}, {self.tile(base, shape)})")

    def tree(self, like: Value, depth: int, first: str = "") -> str:
        """An expression of a type; ``first`` is its first leaf."""
        if depth == 0:
            return first or self.leaf(like)
        left = self.tree(like, depth - 1, first)
        right = self.tree(like, depth - self.random.choice((1, 1, depth)))
        sign = self.random.choice(BINARY)
        return f"({left} {sign} {right})"

    def leaf(self, like: Value) -> str:
        value = self.partner(like)
        if len(value.shape) == 2 and self.random.random() < 0.3:
            kind = self.random.choice(("xor", "add", "max", "mul"))
            dim = self.random.randrange(2)
            return f'xetile.tile_reduce("{kind}", {value.name}, [{dim}])'
        return value.name

    def element(self) -> str:
        """A scalar integer of an array, or of the run."""
        names = [n for n in "XY" if self.dtypes[n] in SIGNED]
        kinds = ["n", "n - 1", "X.shape[0]", "(n - 2)"]
        kinds += [f"{name}[{self.random.randrange(3)}, n]" for name in names] * 2
        if self.mode != "one":
            kinds += ["xetile.program_id(0)", "xetile.num_programs(1)"]
        return self.random.choice(kinds)

    def scalars(self) -> None:
        """Division of scalars, by zero as well; what comes out is used."""
        name, sign = self.name("q"), self.random.choice(("//", "%"))
        left = f"({self.element()} + {self.random.randrange(5)})"
        self.write(f"{name} = {left} {sign} {self.element()}")
        self.write(f"{name} = min(max({name}, -3), 3)")
        a = self.number()
        if a.dtype in (*ALL_FLOATS, *SIGNED):
            self.result(f"{a.name} * {name} + {name}", a.shape, a.dtype)

    def carries(self) -> None:
        """A loop that carries several values round, a scalar and a tile with them."""
        first = self.number()
        base = self.base(len(first.shape), first.dtype)
        held = [self.any_value(first.shape, first.dtype) for _ in range(2)]
        names = [self.name() for _ in range(3)]
        begin = ", ".join(value.name for value in (first, *held))
        self.write(f"{', '.join(names)} = {begin}")
        count, tile = self.name("q"), self.name("t")
        self.write(f"{count} = {self.random.choice(('0', 'n', '-2'))}")
        if base is not None:
            self.write(f"{tile} = {self.tile(base, first.shape)}")
        self.write(f"for {self.name('i')} in range({self.trips()}):")
        self.indent += 1
        text = f"{names[0]} {self.random.choice('+-*')} {names[1]}"
        if base is not None:
            text = f"{text} + xetile.load_tile({tile})"
            steps = [f"{count}", "1", f"{self.random.choice(FAR)}", "-2"]
            step = [self.random.choice(steps) for _ in first.shape]
            self.write(
                f"{tile} = xetile.update_tile_offset({tile}, [{', '.join(step)}])"
            )
        if first.dtype in ALL_FLOATS:
            text = self.clamped(text, first.dtype)
        order = self.random.sample(names, 3)
        self.write(f"{', '.join(order)} = {names[1]}, {names[2]}, {text}")
        self.write(f"{count} = {count} + {self.random.choice(('1', 'n', '-3'))}")
        self.indent -= 1
        self.values += [Value(name, first.shape, first.dtype) for name in names]
