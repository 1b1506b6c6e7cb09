"""What a random kernel may do; each function writes one such thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from workgroup_writer import EXACT, EXTENTS, Tile, Value, Writer, vector

Statement = Callable[[Writer], object]


# Elementwise --------------------------------------------------------------------------


def load(w: Writer) -> Value:
    return w.load(w.input(w.shape(), w.pick(("f32", "f16", "i32"))))


def _partner(w: Writer, value: Value) -> Value:
    """Another value of the same type."""
    found = [
        v for v in w.values if (v.shape, v.element) == (value.shape, value.element)
    ]
    if w.chance(3):
        return w.splat(value, w.pick((0, 1, 3)))
    if w.chance(3):
        return w.load(w.input(value.shape, value.element))
    return w.pick(found)


def _fits(value: Value, bound: int) -> bool:
    return bound <= EXACT[value.element] or not value.is_float


def binary(w: Writer) -> Value:
    left = w.pick(w.values)
    right = _partner(w, left)
    kinds = ["add", "max", "min", "absdiff", "select"]
    if _fits(left, left.bound * right.bound):
        kinds.append("mul")
    kind = w.pick(kinds)
    if not _fits(left, left.bound + right.bound):
        kind = "min"
    return combine(w, kind, left, right)


def combine(w: Writer, kind: str, left: Value, right: Value) -> Value:
    map_ = w.with_map(left.shape, 5)
    both = f"{left.name}, {right.name}"
    suffix = "f" if left.is_float else "i"
    bounds = {"add": left.bound + right.bound, "mul": left.bound * right.bound}
    made = replace(left, bound=bounds.get(kind, max(left.bound, right.bound)))
    if kind in ("add", "mul"):
        return w.emit(made, f"arith.{kind}{suffix} {both}{map_} : {made.type}")
    if kind in ("max", "min"):
        name = f"{kind}imumf" if left.is_float else f"{kind}si"
        return w.emit(made, f"arith.{name} {both}{map_} : {made.type}")
    if kind == "absdiff":
        difference = w.index(f"arith.sub{suffix} {both}{map_} : {made.type}")
        name = "math.absf" if left.is_float else "math.absi"
        return w.emit(made, f"{name} {difference} : {made.type}")
    compare = "cmpf olt" if left.is_float else "cmpi slt"
    test = w.index(f"arith.{compare}, {both} : {made.type}")
    mask = vector(left.shape, "i1")
    return w.emit(made, f"arith.select {test}, {both}{map_} : {mask}, {made.type}")


def cast(w: Writer) -> Value:
    value = w.pick(w.values)
    to = {"f32": ("f16", "bf16"), "f16": ("f32",), "bf16": ("f32",), "i32": ("f32",)}
    made = replace(value, element=w.pick(to[value.element]))
    if value.element == "i32":
        small = w.splat(value, 15)
        value = w.emit(
            replace(value, bound=15),
            f"arith.andi {value.name}, {small.name} : {value.type}",
        )
        made = replace(made, bound=15)
    if not _fits(made, made.bound):
        return value
    names = {
        ("f32", "f16"): "truncf",
        ("f32", "bf16"): "truncf",
        ("i32", "f32"): "sitofp",
    }
    name = names.get((value.element, made.element), "extf")
    return w.emit(made, f"arith.{name} {value.name} : {value.type} to {made.type}")


# Products, reductions and the like ----------------------------------------------------


def mma(w: Writer) -> Value:
    """A product with any value on the left."""
    left = w.pick(w.values)
    columns = w.pick(EXTENTS)
    right = w.load(w.input((left.shape[1], columns), left.element))
    return multiply(w, left, right)


def multiply(w: Writer, left: Value, right: Value, acc: Value | None = None) -> Value:
    shape = (left.shape[0], right.shape[1])
    bound = left.shape[1] * left.bound * right.bound
    made = Value("", shape, "f32" if left.is_float else "i32", bound)
    if not _fits(made, bound):
        return left
    maps = []
    if w.chance(2):
        maps.append(f"wg_map_c = {w.map(shape)}")
    if w.chance(6):
        maps.append(f"wg_map_a = {w.map(left.shape)}")
    given = f" {{{', '.join(maps)}}}" if maps else ""
    values = [left, right, *([acc] if acc else [])]
    names = ", ".join(v.name for v in values)
    types = ", ".join(v.type for v in values)
    return w.emit(made, f"xetile.tile_mma {names}{given} : {types} -> {made.type}")


def reduce(w: Writer) -> Value:
    value = w.pick(w.values)
    dims = w.pick(([0], [1], [1], [0, 1]))
    rows, columns = [1 if d in dims else n for d, n in enumerate(value.shape)]
    number = value.shape[0] * value.shape[1] // (rows * columns)
    kind = w.pick(("add", "max"))
    if not _fits(value, number * value.bound):
        kind = "max"
    bound = number * value.bound if kind == "add" else value.bound
    made = replace(value, shape=(rows, columns), bound=bound)
    name = kind if kind == "add" else "maximumf" if value.is_float else "maxsi"
    map_ = w.with_map(made.shape)
    return w.emit(
        made,
        f"xetile.tile_reduce <{name}>, {value.name} {dims}{map_} : "
        f"{value.type} -> {made.type}",
    )


def broadcast(w: Writer) -> Value:
    thin = [v for v in w.values if 1 in v.shape]
    if not thin:
        return spread_scalar(w)
    value = w.pick(thin)
    dims = [d for d in (0, 1) if value.shape[d] == 1]
    dims = [w.pick(dims)] if w.chance(2) else dims
    rows, columns = [
        w.pick(EXTENTS) if d in dims else n for d, n in enumerate(value.shape)
    ]
    made = replace(value, shape=(rows, columns))
    return w.emit(
        made,
        f"xetile.tile_broadcast {value.name} {dims}{w.with_map(made.shape)} : "
        f"{value.type} -> {made.type}",
    )


def spread_scalar(w: Writer) -> Value:
    """A number of this program in every element."""
    made = Value("", w.shape(), "i32", 4)
    number = w.index("arith.index_cast %px : index to i32")
    return w.emit(made, f"vector.broadcast {number} : i32 to {made.type}")


def transpose(w: Writer) -> Value:
    value = w.pick(w.values)
    made = replace(value, shape=(value.shape[1], value.shape[0]))
    map_ = w.with_map(made.shape)
    text = f"xetile.tile_transpose {value.name}, [1, 0]{map_}"
    return w.emit(made, f"{text} : {value.type} -> {made.type}")


def conv_layout(w: Writer) -> Value:
    value = w.pick(w.values)
    source = f", source_map = {w.map(value.shape)}" if w.chance(3) else ""
    given = f"{{map = {w.map(value.shape)}{source}}}"
    text = f"xetile.tile_conv_layout {value.name} {given} : {value.type}"
    return w.emit(value, text)


def scan(w: Writer) -> Value:
    value = w.pick(w.values)
    dim = w.pick((0, 1))
    bound = value.bound * value.shape[dim]
    if not _fits(value, bound):
        return value
    text = (
        f"xetile.tile_scan <add>, {value.name} [{dim}] : {value.type} -> {value.type}"
    )
    return w.emit(replace(value, bound=bound), text)


def reshape(w: Writer) -> Value:
    value = w.pick(w.values)
    number = value.shape[0] * value.shape[1]
    rows = w.pick([n for n in EXTENTS if number % n == 0])
    made = replace(value, shape=(rows, number // rows))
    text = f"vector.shape_cast {value.name} : {value.type} to {made.type}"
    return w.emit(made, text)


# Memory -------------------------------------------------------------------------------


def store(w: Writer) -> None:
    value = w.pick(w.values)
    w.store(value, w.output(value.shape, value.element))


def in_place(w: Writer) -> Value:
    """Load, change and store one tile: subgroups meet in memory."""
    shape = w.shape()
    square = (shape[0], shape[0]) if w.chance(2) else shape
    tile = w.output(square, w.pick(("f32", "i32")))
    value = w.load(tile)
    if square[0] == square[1]:
        text = f"xetile.tile_transpose {value.name}, [1, 0]"
        value = w.emit(value, f"{text} : {value.type} -> {value.type}")
    w.store(value, tile)
    again = replace(tile, encoding=w.encoding(tile.shape, *tile.order))
    array = w.arguments[-1].partition(":")[0]
    return w.load(w.tile(array, again, w.place(tile.shape)))


def load_several(w: Writer) -> Value:
    """Two or four vectors, side by side."""
    shape, number = w.shape(), w.pick((2, 4))
    wide = w.input((shape[0], number * shape[1]), "f16")
    array = w.arguments[-1].partition(":")[0]
    order = ["order = [0, 1]"] if "order" in wide.encoding else []
    length = f"array_length = {number} : i64"
    tile = Tile("", shape, "f16", w.encoding(shape, length, *order))
    tile = w.tile(array, tile, w.place(wide.shape))
    first = w.name("r")
    types = ", ".join([vector(shape, "f16")] * number)
    w.line(f"{first}:{number} = xetile.load_tile {tile.name} : {tile.type} -> {types}")
    found = [Value(f"{first}#{i}", shape, "f16") for i in range(number)]
    w.values += found
    return found[-1]


def through_slm(w: Writer) -> Value:
    """Store to shared memory with one map, load with another one."""
    value = w.pick(w.values)
    rows, columns = value.shape
    memref = f"memref<{rows}x{columns}x{value.element}, 3>"
    name = w.name("slm")
    w.shared.append(f"{name} = memref.alloc() : {memref}")
    space = "memory_space = 3"
    into = Tile("", value.shape, value.element, w.encoding(value.shape, space))
    zeros = ("0", "0")
    w.store(value, w.tile(name, into, zeros, memref))
    if w.chance(2):
        w.line("gpu.barrier")
    out = replace(into, encoding=w.encoding(value.shape, space), bound=value.bound)
    return w.load(w.tile(name, out, zeros, memref))


def prefetch(w: Writer) -> None:
    tile = w.input(w.shape(), "f16")
    w.line(f"xetile.prefetch_tile {tile.name} : {tile.type}")


def atomic(w: Writer) -> Value:
    """Add to a tile of this program's own, so that the old values are known."""
    value = w.pick(
        [v for v in w.values if v.element in ("f32", "i32")] or [load_f32(w)]
    )
    tile = w.output(value.shape, value.element)
    made = replace(value, bound=4)
    text = f"xetile.atomic_rmw_tile <add> {value.name}, {tile.name}"
    return w.emit(made, f"{text} : {value.type}, {tile.type} -> {made.type}")


def atomic_of_all(w: Writer) -> None:
    """Add to what all programs add to; nobody looks at the old values."""
    value = w.pick(
        [v for v in w.values if v.element in ("f32", "i32")] or [load_f32(w)]
    )
    name = w.argument(w.numbers(value.shape, value.element))
    tile = Tile("", value.shape, value.element, w.encoding(value.shape))
    tile = w.tile(name, tile, ("0", "0"))
    old = w.name("old")
    w.line(
        f"{old} = xetile.atomic_rmw_tile <add> {value.name}, {tile.name} : "
        f"{value.type}, {tile.type} -> {value.type}"
    )


def load_f32(w: Writer) -> Value:
    return w.load(w.input(w.shape(), "f32"))


def _numbers_from_zero(w: Writer, shape: tuple[int, int]) -> str:
    """0, 1, 2, ... row by row."""
    flat = vector((shape[0] * shape[1],), "index")
    steps = w.index(f"vector.step : {flat}")
    matrix = vector(shape, "index")
    return w.index(f"vector.shape_cast {steps} : {flat} to {matrix}")


def _scattered(w: Writer, array: str, tile: Tile, indices: str) -> Tile:
    named = replace(tile, name=w.name("t"))
    memref = w.arguments[-1].partition(": ")[2]
    types = f"{memref}, {vector(tile.shape, 'index')}"
    w.line(
        f"{named.name} = xetile.init_tile {array}, {indices} : {types} -> {named.type}"
    )
    return named


def _mask(w: Writer, shape: tuple[int, int], indices: str, limit: int) -> str:
    type_ = vector(shape, "index")
    bound = w.index(f"arith.constant dense<{limit}> : {type_}")
    return w.index(f"arith.cmpi slt, {indices}, {bound} : {type_}")


def gather(w: Writer) -> Value:
    """Every second element of a row of numbers, as far as there are some."""
    shape = w.shape()
    number, element = shape[0] * shape[1], w.pick(("f32", "i32"))
    type_ = vector(shape, "index")
    two = w.index(f"arith.constant dense<2> : {type_}")
    steps = _numbers_from_zero(w, shape)
    indices = w.index(f"arith.muli {steps}, {two} : {type_}")
    array = w.argument(w.numbers((2 * number,), element))
    tile = Tile("", shape, element, w.encoding(shape, "scattered = true"))
    tile = _scattered(w, array, tile, indices)
    mask = _mask(w, shape, indices, w.pick((1, number, 2 * number)))
    made = Value("", shape, element)
    types = f"{tile.type}, {vector(shape, 'i1')} -> {made.type}"
    return w.emit(made, f"xetile.load_gather {tile.name}, {mask} : {types}")


def scatter(w: Writer) -> None:
    """Write a value to a part of a row that is this program's own."""
    value = w.pick(w.values)
    rows, columns = value.shape
    number = rows * columns
    type_ = vector(value.shape, "index")
    programs = w.constant(w.grid[0])
    line = w.index(f"arith.muli %py, {programs} : index")
    program = w.index(f"arith.addi {line}, %px : index")
    start = w.index(f"arith.muli {program}, {w.constant(number)} : index")
    starts = w.index(f"vector.broadcast {start} : index to {type_}")
    steps = _numbers_from_zero(w, value.shape)
    indices = w.index(f"arith.addi {steps}, {starts} : {type_}")
    total = number * w.grid[0] * w.grid[1]
    array = w.argument(w.numbers((total,), value.element))
    encoding = w.encoding(value.shape, "scattered = true")
    tile = _scattered(w, array, Tile("", value.shape, value.element, encoding), indices)
    mask = _mask(w, value.shape, steps, w.pick((1, number // 2, number)))
    types = f"{value.type}, {vector(value.shape, 'i1')}, {tile.type}"
    w.line(f"xetile.store_scatter {value.name}, {mask}, {tile.name} : {types}")


SIMPLE: list[Statement] = [
    *(load, binary, binary, binary, cast, mma, mma, reduce, reduce, broadcast),
    *(broadcast, spread_scalar, transpose, transpose, conv_layout, scan, reshape),
    *(
        load_several,
        store,
        in_place,
        through_slm,
        prefetch,
        atomic,
        atomic_of_all,
        gather,
        scatter,
    ),
]
