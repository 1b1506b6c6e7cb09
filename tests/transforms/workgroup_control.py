"""What a random kernel may do that holds other such things: loops and branches."""

from __future__ import annotations

from dataclasses import replace

from workgroup_statements import SIMPLE, Statement, binary, combine, multiply
from workgroup_writer import EXACT, Value, Writer, vector

_LIMIT = 1 << 16
"""What values of loops are cut to; leaves room for products behind them."""


def _some(w: Writer) -> None:
    for _ in range(w.pick((1, 2, 3))):
        w.pick(SIMPLE if w.depth > 1 else SIMPLE + COMPOUND)(w)


def _cut(w: Writer, value: Value, bound: int) -> Value:
    """``value``, but not more than ``bound`` if it is of floats."""
    if not value.is_float or value.bound <= bound:
        return value
    return combine(w, "min", value, w.splat(value, bound))


def _next(w: Writer, carried: Value) -> Value:
    """What a loop carries on: of the same type, and no greater than it was."""
    fitting = [
        v for v in w.values if (v.shape, v.element) == (carried.shape, carried.element)
    ]
    return _cut(w, w.pick(fitting), carried.bound)


def for_loop(w: Writer) -> Value:
    """Carry a tile that moves and a value that anything may happen to."""
    tile = w.input(w.shape(), w.pick(("f32", "f16")))
    start = w.pick(w.values)
    bound = min(EXACT[start.element], max(start.bound, 16), _LIMIT)
    carried = replace(start, name=w.name("c"), bound=bound)
    inside = replace(tile, name=w.name("t"))
    bounds = [w.constant(n) for n in (0, w.pick((0, 1, 2, 3)), 1)]
    first, types = w.name("r"), f"({tile.type}, {start.type})"
    w.line(
        f"{first}:2 = scf.for {w.name('k')} = {bounds[0]} to {bounds[1]} step "
        f"{bounds[2]} iter_args({inside.name} = {tile.name}, {carried.name} = "
        f"{start.name}) -> {types} {{"
    )
    with w.body():
        w.values.append(carried)
        w.load(inside)
        _some(w)
        last = _next(w, carried)
        moved = w.name("t")
        by = [str(w.pick((0, 1, n))) for n in inside.shape]
        w.line(
            f"{moved} = xetile.update_tile_offset {inside.name}, [{', '.join(by)}] : "
            f"{inside.type}"
        )
        w.line(f"scf.yield {moved}, {last.name} : {tile.type}, {start.type}")
    w.line("}")
    result = replace(carried, name=f"{first}#1")
    w.values.append(result)
    return result


def gemm(w: Writer) -> Value:
    """A product over K, step by step."""
    element = w.pick(("f16", "bf16", "f32"))
    rows, columns, depth = w.pick((8, 16, 32)), w.pick((8, 16, 32)), w.pick((8, 16))
    trips = w.pick((1, 2, 3))
    a, b = w.input((rows, depth), element), w.input((depth, columns), element)
    zero = w.splat(Value("", (rows, columns), "f32"), 0)
    acc = replace(zero, name=w.name("c"), bound=trips * depth * 16)
    inside = [replace(tile, name=w.name("t")) for tile in (a, b)]
    bounds = [w.constant(n) for n in (0, trips, 1)]
    first = w.name("r")
    types = f"{a.type}, {b.type}, {zero.type}"
    carried = f"{inside[0].name} = {a.name}, {inside[1].name} = {b.name}"
    w.line(
        f"{first}:3 = scf.for {w.name('k')} = {bounds[0]} to {bounds[1]} step "
        f"{bounds[2]} iter_args({carried}, {acc.name} = {zero.name}) -> ({types}) {{"
    )
    with w.body():
        left, right = w.load(inside[0]), w.load(inside[1])
        total = multiply(w, left, right, acc)
        moved = [w.name("t") for _ in inside]
        for name, tile, by in zip(moved, inside, ("0, 8", "8, 0")):
            w.line(
                f"{name} = xetile.update_tile_offset {tile.name}, [{by}] : {tile.type}"
            )
        w.line(f"scf.yield {moved[0]}, {moved[1]}, {total.name} : {types}")
    w.line("}")
    result = replace(acc, name=f"{first}#2")
    w.values.append(result)
    return result


def _condition(w: Writer) -> str:
    """Something that is the same for all subgroups of a program."""
    if w.chance(2):
        return w.index(f"arith.cmpi eq, %px, {w.constant(0)} : index")
    value = w.pick(w.values)
    kind = "maximumf" if value.is_float else "maxsi"
    one = vector((1, 1), value.element)
    top = w.index(
        f"xetile.tile_reduce <{kind}>, {value.name} [0, 1] : {value.type} -> {one}"
    )
    number = w.index(f"vector.extract {top}[0, 0] : {value.element} from {one}")
    literal = "3.0" if value.is_float else "3"
    three = w.index(f"arith.constant {literal} : {value.element}")
    compare = "cmpf ogt" if value.is_float else "cmpi sgt"
    return w.index(f"arith.{compare}, {number}, {three} : {value.element}")


def branch(w: Writer) -> Value:
    condition = _condition(w)
    other = w.pick(w.values)
    bound = min(EXACT[other.element], max(other.bound, 16))
    result = replace(other, name=w.name("r"), bound=bound)
    w.line(f"{result.name} = scf.if {condition} -> ({other.type}) {{")
    with w.body():
        _some(w)
        w.line(f"scf.yield {_next(w, result).name} : {other.type}")
    w.line("} else {")
    with w.body():
        if w.chance(2):
            _some(w)
        w.line(f"scf.yield {_next(w, result).name} : {other.type}")
    w.line("}")
    w.values.append(result)
    return result


def while_loop(w: Writer) -> Value:
    start = w.pick(w.values)
    bound = min(EXACT[start.element], max(start.bound, 16))
    result = replace(start, name=w.name("r"), bound=bound)
    before = replace(result, name=w.name("c"))
    after = replace(result, name=w.name("c"))
    zero, limit, one = (w.constant(n) for n in (0, w.pick((0, 1, 2)), 1))
    counter, again = w.name("k"), w.name("k")
    types = f"index, {start.type}"
    w.line(
        f"{result.name}:2 = scf.while ({counter} = {zero}, {before.name} = "
        f"{start.name}) : ({types}) -> ({types}) {{"
    )
    with w.body():
        w.values.append(before)
        passed = _cut(w, binary(w), bound) if w.chance(3) else before
        if passed.type != before.type:
            passed = before
        test = w.index(f"arith.cmpi slt, {counter}, {limit} : index")
        w.line(f"scf.condition({test}) {counter}, {passed.name} : {types}")
    w.line("} do {")
    w.line(f"^bb0({again}: index, {after.name}: {start.type}):")
    with w.body():
        w.values.append(after)
        _some(w)
        last = _next(w, after)
        following = w.index(f"arith.addi {again}, {one} : index")
        w.line(f"scf.yield {following}, {last.name} : {types}")
    w.line("}")
    made = replace(result, name=f"{result.name}#1")
    w.values.append(made)
    return made


COMPOUND: list[Statement] = [for_loop, gemm, gemm, branch, while_loop]
