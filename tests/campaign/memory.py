"""What generated kernels do with memory: tiles, gathers, scatters, atomics, SLM."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from tests.campaign.values import (
    ACCUMULATORS,
    ALL_FLOATS,
    INTEGERS,
    SIGNED,
    Shape,
    Value,
    Values,
)

RANKS = {"X": 2, "Y": 2, "Z": 2, "W": 3, "V": 1, "U": 1}
COMMUTATIVE = ("add", "max", "min", "mul", "and", "or", "xor")

TRIPS = 16
"""Of loops along lines: the reference takes too long for more."""


@dataclass
class Memory(Values):
    """Statements that load and store; the element type of each array is known."""

    mode: str = "one"
    dtypes: dict[str, str] = field(default_factory=dict[str, str])
    kind: str = "add"
    turned: bool = False
    leaving: bool = False

    def offset(self) -> str:
        number = self.random.choice((0, 0, 0, 1, 2, -1, -3, 7, 16, 64))
        kinds = [f"{number}", f"n + {number}", f"{number}", "(n * 5 - 3) // 2"]
        kinds += [f"{number}", "(n - 2) % 3", "min(n, 2)", "max(X.shape[1] - 9, n)"]
        kinds += ["xetile.multiple_of(n * 4, 4)", "xetile.cdiv(n, 2)"]
        if self.mode != "one":
            kinds += [f"row + {number}", f"col + {number}"]
        return self.random.choice(kinds)

    def base(self, rank: int, dtype: str | None, stored: bool = False) -> str | None:
        """An array or a view of one; programs read none that another one writes."""
        names = [n for n, r in RANKS.items() if r >= rank and n != "U"]
        if rank == 1 and self.mode == "one":
            names.append("U")
        if self.mode != "one":
            names.remove("Z")
        if stored and self.mode != "one":
            return None
        if dtype is not None:
            names = [n for n in names if self.dtypes[n] == dtype]
        if not names:
            return None
        name = self.random.choice(names)
        size = f"{name}.shape[0]"
        indices = ["0", "1", "n", "n + 1", "-1", f"n % {size}", f"(n + 1) % {size}"]
        text = name
        for _ in range(RANKS[name] - rank):
            text += f"[{self.random.choice(indices)}]"
        if rank == 2 and self.random.random() < 0.3:
            text += ".T"
        return text

    def tile(self, base: str, shape: Shape) -> str:
        place = ", ".join(self.offset() for _ in shape)
        return f"xetile.init_tile({base}, [{place}], {shape})"

    def load(self, shape: Shape, dtype: str | None = None) -> Value:
        base = self.base(len(shape), dtype)
        if base is None:
            value = self.load(shape)
            return self.define(self.converted(value, dtype or ""), shape, dtype or "")
        found = self.dtypes[base[0]]
        padding = self.random.choice(("", "", ", padding=1", ", padding=2"))
        if found in SIGNED or found in ALL_FLOATS:
            padding = self.random.choice((padding, ", padding=-2"))
        padding = "" if found == "i1" else padding
        text = f"xetile.load_tile({self.tile(base, shape)}{padding})"
        if base[0] == "U":
            return self.result(text, shape, found)
        return self.define(text, shape, found)

    def loaded(self) -> None:
        shape: Shape = self.random.choice(self.shapes)
        self.load(shape if self.random.random() < 0.8 else shape[:1])

    def store(self, value: Value | None = None) -> None:
        value = value or self.any_value()
        rank, alike = len(value.shape), value.dtype in self.dtypes.values()
        dtype = value.dtype if alike and self.random.random() < 0.5 else None
        base = self.base(rank, dtype, stored=True)
        if base is not None:
            cast = self.converted(value, self.dtypes[base[0]])
            self.write(f"xetile.store_tile({cast}, {self.tile(base, value.shape)})")

    def own(self, value: Value | None = None) -> None:
        """Store to the part of a program, and load it again."""
        r, c = self.shapes[0]
        alike = self.dtypes["Z"] if self.random.random() < 0.5 else None
        value = value or self.any_value((r, c), alike)
        flat, over = ("Z.T", "Z") if self.turned else ("Z", "Z.T")
        base, place = self.random.choice(((flat, "row, col"), (over, "col, row")))
        shape = (r, c) if base == flat else (c, r)
        cast = self.converted(value, self.dtypes["Z"])
        cast = cast if base == flat else f"({cast}).T"
        tile = self.name("t")
        text = f"xetile.init_tile({base}, [{place}], {shape}{self.map_of(shape)})"
        self.write(f"{tile} = {text}")
        self.write(f"xetile.store_tile({cast}, {tile})")
        if self.random.random() < 0.5:
            self.define(f"xetile.load_tile({tile})", shape, self.dtypes["Z"])

    def map_of(self, shape: Shape) -> str:
        """Which of the subgroups owns what of ``shape``, as an argument."""
        if self.mode != "programs" or self.random.random() < 0.5:
            return ""
        layout = [2 if n % 2 == 0 else 1 for n in shape]
        data = [n // count for n, count in zip(shape, layout)]
        return f", wg_map=xetile.wg_map(sg_layout={layout}, sg_data={data})"

    def scalar(self) -> None:
        """An element of an array, in a vector of its type."""
        name = self.random.choice("XYW" if self.mode != "one" else "XYZW")
        dtype = self.dtypes[name]
        if dtype not in ("i1", "u64"):
            a = self.any_value(dtype=dtype)
            place = self.random.choice(("0, n", "n, 1", "2, X.shape[1] - 1"))
            place = f"n, {place}" if name == "W" else place
            self.result(f"{a.name} - {name}[{place}]", a.shape, dtype)

    def room(self, shape: Shape) -> str:
        """A tile of the memory that the workgroup shares for the whole kernel."""
        place = ", ".join(self.random.choice(("0", "0", "1", "-2", "n")) for _ in shape)
        return f"xetile.init_tile(room, [{place}], {shape})"

    def shelved(self) -> None:
        """To and from shared memory, in loops and branches as well."""
        if self.mode == "subgroups":
            return
        for _ in range(self.random.randrange(1, 3)):
            value = self.any_value(self.random.choice(self.shapes))
            cast = self.converted(value, "f32")
            self.write(f"xetile.store_tile({cast}, {self.room(value.shape)})")
            self.write("xetile.barrier()")
        shape = self.random.choice(self.shapes)
        self.define(f"xetile.load_tile({self.room(shape)})", shape, "f32")
        self.write("xetile.barrier()")

    def walked(self) -> None:
        """A scatter tile that a loop moves."""
        base = self.base(1, None) or "V"
        dtype = self.dtypes[base[0]]
        if dtype == "i1" or (base == "U" and self.mode != "one"):
            return
        shape: Shape = self.random.choice((*self.shapes, self.shapes[0][:1]))
        kept = self.any_value(shape, dtype).name
        total, tile = self.name(), self.name("t")
        self.write(f"{total} = {kept}")
        wide = self.random.choice(("i32", "i64"))
        index = self.indices(shape).replace(".to(xetile.i64)", f".to(xetile.{wide})")
        self.write(f"{tile} = xetile.init_tile({base}, ({index}).to(xetile.{wide}))")
        step = self.random.choice((1, -2, 5))
        self.write(f"{tile}_by = xetile.full({shape}, {step}, xetile.{wide})")
        self.write(f"for {self.name('i')} in range(n + 1):")
        self.indent += 1
        added = f"{total} + xetile.load_gather({tile})"
        clamped = self.clamped(added, dtype)
        self.write(f"{total} = {clamped if dtype in ALL_FLOATS else added}")
        if self.mode == "one" and self.random.random() < 0.4:
            self.write(f"xetile.store_scatter({total}, None, {tile})")
        self.write(f"{tile} = xetile.update_tile_offset({tile}, {tile}_by)")
        self.indent -= 1
        self.values.append(Value(total, shape, dtype))

    def saved(self) -> None:
        if self.mode == "one":
            self.store()
        else:
            self.own()

    def indices(self, shape: Shape) -> str:
        """Different ones, some outside of any array."""
        step = self.random.choice((1, 1, 3, -1, 7))
        start = self.random.choice(("0", "n", "-3", "40"))
        if len(shape) == 1:
            numbers = f"xetile.arange({shape[0]})"
        else:
            rows, cols = (f"xetile.arange({n})" for n in shape)
            numbers = f"({rows}[:, None] * {shape[1]} + {cols}[None, :])"
        cast = self.random.choice(("", ".to(xetile.i64)"))
        return f"{numbers}{cast} * {step} + {start}"

    def gather(self) -> None:
        a = self.number()
        dtype = self.random.choice(("i32", "i64"))
        index = f"({self.converted(a, dtype)}) * 3 + n"
        if a.dtype in INTEGERS:
            index = f"({self.converted(a, dtype)}) % 40 - 2"
        if self.random.random() < 0.3:
            index = self.indices(a.shape)
        base = self.base(1, None) or "V"
        found = self.dtypes[base[0]]
        mask = ""
        if self.random.random() < 0.4:
            mask = f", {self.any_value(a.shape, 'i1').name}"
        padding = "" if found == "i1" else self.random.choice(("", ", padding=2"))
        text = f"xetile.load_gather(xetile.init_tile({base}, {index}){mask}{padding})"
        if base == "U":
            self.result(text, a.shape, found)
        else:
            self.define(text, a.shape, found)

    def neighbours(self) -> None:
        """Elements of a matrix by vectors of indices, and parts of arrays."""
        r, c = self.random.choice(self.shapes)
        rows, cols = f"xetile.arange({r})[:, None]", f"xetile.arange({c})[None, :]"
        first = self.random.choice(("", " + n", " - 2", " * 2"))
        base = self.random.choice(("X", "Y"))
        text = f"{base}[{rows}{self.random.choice(('', ' + n'))}, {cols}{first}]"
        if self.random.random() < 0.4:
            part = self.random.choice(("[1:]", "[:n, 1:]", "[n:, :-1]"))
            text = f"xetile.load_tile(xetile.init_tile({base}{part}, [0, 0], {(r, c)}))"
        self.define(text, (r, c), self.dtypes[base])

    def scatter(self) -> None:
        if self.mode != "one":
            return
        value = self.any_value()
        base = self.base(1, None) or "V"
        mask = self.random.choice(("None", self.any_value(value.shape, "i1").name))
        tile = f"xetile.init_tile({base}, {self.indices(value.shape)})"
        cast = self.converted(value, self.dtypes[base[0]])
        self.write(f"xetile.store_scatter({cast}, {mask}, {tile})")

    def atomic(self) -> None:
        dtype = self.dtypes["U"]
        value = self.number()
        kinds = COMMUTATIVE[:3] if dtype in ALL_FLOATS else COMMUTATIVE
        kind = self.random.choice(kinds) if self.mode == "one" else self.kind
        cast = self.converted(value, dtype)
        mask = ""
        if self.random.random() < 0.3:
            mask = f", mask={self.any_value(value.shape, 'i1').name}"
        dense = len(value.shape) == 1 and self.random.random() < 0.5
        if dense:
            tile = self.tile("U", value.shape)
        else:
            tile = f"xetile.init_tile(U, {self.indices(value.shape)})"
        if self.mode == "one":
            kind = self.random.choice((kind, kind, "xchg"))
            text = f'xetile.atomic_rmw_tile("{kind}", {cast}, {tile}{mask})'
            if dtype in INTEGERS and self.random.random() < 0.3:
                text = f"xetile.atomic_cas({tile}, {cast}, {self.random.randrange(3)})"
            self.result(text, value.shape, dtype)
        else:
            self.write(f'xetile.atomic_rmw_tile("{kind}", {cast}, {tile}{mask})')

    def shared(self) -> None:
        """Through memory of the workgroup, moved or transposed on the way."""
        value = self.any_value(self.random.choice(self.shapes))
        if self.indent > 1 or value.dtype == "i1" or self.mode == "subgroups":
            return
        if prod(value.shape) > self.most:
            return
        room = self.name("s")
        r, c = value.shape
        self.write(f"{room} = xetile.slm({value.shape}, xetile.{value.dtype})")
        whole = f"xetile.init_tile({room}, [0, 0], {value.shape})"
        self.write(f"xetile.store_tile({value.name}, {whole})")
        self.write("xetile.barrier()")
        place = f"[{self.random.choice((0, 1, -1))}, {self.random.choice((0, 2, 'n'))}]"
        shape = self.random.choice(((r, c), (1, c), (r, 1), (r, c)))
        tile = f"xetile.init_tile({room}, {place}, {shape})"
        self.define(f"xetile.load_tile({tile})", shape, value.dtype)
        self.write("xetile.barrier()")

    def exchange(self) -> None:
        """Subgroups hand each other a value."""
        value = self.any_value(self.shapes[0])
        if self.mode != "subgroups" or value.dtype == "i1":
            return
        if prod(value.shape) > self.most:
            return
        r, c = value.shape
        room = self.name("s")
        self.write(f"{room} = xetile.slm(({4 * r}, {c}), xetile.{value.dtype})")
        tile = f"xetile.init_tile({room}, [me * {r}, 0], {value.shape})"
        self.write(f"xetile.store_tile({value.name}, {tile})")
        self.write("xetile.barrier()")
        other = f"((me + {self.random.randrange(4)}) % 4) * {r}"
        if self.random.random() < 0.4:
            self.define(
                f"xetile.load_tile(xetile.init_tile({room}, [0, 0], {(4 * r, c)}))",
                (4 * r, c),
                value.dtype,
            )
        place = f"[{other}, {self.random.choice((0, 1, -1))}]"
        tile = f"xetile.init_tile({room}, {place}, {value.shape})"
        self.define(f"xetile.load_tile({tile})", value.shape, value.dtype)
        self.write("xetile.barrier()")

    def moved(self) -> None:
        """A tile that a loop moves: loaded, changed and stored on its way."""
        shape: Shape = self.random.choice(self.shapes)
        base = self.base(2, None) or "X"
        dtype = self.dtypes[base[0]]
        if dtype == "i1":
            return
        total = self.any_value(shape, dtype)
        tile, kept = self.name("t"), self.name()
        self.write(f"{tile} = {self.tile(base, shape)}")
        self.write(f"{kept} = {total.name}")
        counter = self.name("i")
        if self.random.random() < 0.3:
            self.write(f"{counter} = n")
            self.write(f"while {counter} > 0:")
            self.indent += 1
            self.write(f"{counter} = {counter} - 1")
            self.write(f"if {counter} == 1:")
            self.write("    break")
        else:
            self.write(f"for {counter} in range(n):")
            self.indent += 1
        if self.random.random() < 0.3:
            self.write(f"xetile.prefetch_tile({tile})")
        added = f"{kept} + xetile.load_tile({tile})"
        clamped = self.clamped(added, dtype)
        self.write(f"{kept} = {clamped if dtype in ALL_FLOATS else added}")
        if self.mode == "one" and self.random.random() < 0.5:
            self.write(f"xetile.store_tile({kept}, {tile})")
        step = self.random.choice(("[1, 0]", "[0, 1]", "[-1, 2]", "[2, -3]"))
        self.write(f"{tile} = xetile.update_tile_offset({tile}, {step})")
        self.indent -= 1
        self.values.append(Value(kept, shape, dtype))

    def gemm(self) -> None:
        """A K loop over arrays, any of them transposed or converted."""
        (m, n), k = self.random.choice(self.shapes), self.random.choice((1, 8, 17, 32))
        bases = [self.base(2, None) or "X" for _ in range(2)]
        if self.random.random() < 0.3:
            bases[1] = f"W[(n + {self.random.randrange(3)}) % W.shape[0]]"
        types = [self.dtypes[base[0]] for base in bases]
        known = (*ACCUMULATORS, "f8e5m2")
        pair = types[0] if types[0] in known else "f32"
        other = types[1] if {pair, types[1]} <= {"i8", "u8"} else pair
        accumulator = ACCUMULATORS.get(pair, "f32")
        acc, step = self.name(), self.random.choice((k, k, 5))
        counter, start = self.name("k"), self.random.choice(("0", "0", "n", "-2"))
        moves = self.mode != "one"
        row = self.random.choice(("0", "row" if moves else "n"))
        col = self.random.choice(("0", "col" if moves else "1"))
        first = self.random.randrange(3)
        self.write(f"{acc} = xetile.full({(m, n)}, {first}, xetile.{accumulator})")
        extent = f"{bases[0].split('[')[0][0]}.shape[1]"
        if TRIPS * step < max(self.shapes[0]):  # as wide are the arrays
            extent = f"min({extent}, {TRIPS * step})"
        self.write(f"for {counter} in range({start}, {extent}, {step}):")
        self.indent += 1
        outside, names = list(self.values), list[str]()
        if self.random.random() < 0.4:
            self.write(f"xetile.prefetch_tile({self.tile(bases[0], (m, k))})")
        for base, dtype, place, shape in (
            (bases[0], pair, (row, counter), (m, k)),
            (bases[1], other, (counter, col), (k, n)),
        ):
            flip = self.random.choice(("", "", ".T"))
            order = place[::-1] if flip else place
            size = shape[::-1] if flip else shape
            tile = f"xetile.init_tile({base}, [{', '.join(order)}], {size})"
            loaded = f"xetile.load_tile({tile}){flip}"
            if self.dtypes[base[0]] != dtype:
                value = self.define(loaded, shape, self.dtypes[base[0]])
                loaded = self.converted(value, dtype)
            names.append(loaded)
        self.write(f"{acc} = xetile.tile_mma({', '.join(names)}, {acc})")
        self.indent -= 1
        self.values = outside
        self.result(acc, (m, n), accumulator)
