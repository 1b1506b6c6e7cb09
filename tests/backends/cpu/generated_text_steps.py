"""What a random text may do next: functions of a `generated_text.Text`."""

from __future__ import annotations

from math import prod

INTEGERS = ["i8", "i16", "i32", "i64"]
FLOAT_OPS = ["addf", "subf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"]
BIT_OPS = ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui"]
INTEGER_OPS = [*BIT_OPS, "divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi"]
SHIFTS = ["shli", "shrsi", "shrui"]
FLOAT_WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def binary(text):
    a = text.pick()
    b = text.twin(a)
    ops = INTEGER_OPS + SHIFTS
    if a.is_float or a.dtype == "i1":
        ops = FLOAT_OPS if a.is_float else BIT_OPS
    op = f"arith.{text.random.choice(ops)} {a.name}, {b.name} : {{}}"
    text.clamp(text.add(op, a.shape, a.dtype))


def unary(text):
    a = text.pick(lambda value: value.is_float)
    if a is not None:
        names = [
            "math.absf",
            "math.floor",
            "math.trunc",
            "math.roundeven",
            "arith.negf",
        ]
        text.add(f"{text.random.choice(names)} {a.name} : {{}}", a.shape, a.dtype)


def compare(text):
    a = text.pick()
    b, other = text.twin(a), text.constant(a.shape, a.dtype)
    predicates = ["slt", "uge", "eq", "ne"]
    op = "arith.cmpi"
    if a.is_float:
        op, predicates = "arith.cmpf", ["olt", "oge", "une", "ueq"]
    predicate = text.random.choice(predicates)
    mask = text.add(f"{op} {predicate}, {a.name}, {b.name} : {a.type}", a.shape, "i1")
    _select(text, mask, a, other)


def _select(text, mask, a, b):
    op = f"arith.select {mask.name}, {a.name}, {b.name} : {mask.type}, {{}}"
    text.add(op, a.shape, a.dtype)


def convert(text):
    a, to = text.pick(), text.random.choice([*INTEGERS, *FLOAT_WIDTHS])
    if a.is_float and to in FLOAT_WIDTHS:
        have, want = FLOAT_WIDTHS[a.dtype], FLOAT_WIDTHS[to]
        if have == want:
            return
        name = "extf" if have < want else "truncf"
    elif a.is_float:
        a, name = text.clamp(a), "fptosi"
    elif to in FLOAT_WIDTHS:
        name = text.random.choice(["sitofp", "uitofp"])
    else:
        have, want = int(a.dtype[1:]), int(to[1:])
        if have == want:
            return
        name = text.random.choice(["extsi", "extui"]) if have < want else "trunci"
    text.clamp(text.add(f"arith.{name} {a.name} : {a.type} to {{}}", a.shape, to))


def shape_cast(text):
    a = text.pick()
    rest, shape = prod(a.shape), []
    for _ in range(text.random.randint(0, 3)):
        divisors = [n for n in range(1, rest + 1) if rest % n == 0]
        shape.append(text.random.choice(divisors))
        rest //= shape[-1]
    shape.append(rest)
    text.random.shuffle(shape)
    text.add(f"vector.shape_cast {a.name} : {a.type} to {{}}", shape, a.dtype)


def transpose(text):
    a = text.pick()
    dims = text.random.sample(range(len(a.shape)), len(a.shape))
    shape = [a.shape[dim] for dim in dims]
    text.add(f"vector.transpose {a.name}, {dims} : {a.type} to {{}}", shape, a.dtype)


def broadcast(text):
    a = text.pick(lambda value: prod(value.shape) <= 64)
    if a is None:
        return
    lead = text.random.choices([1, 2, 3], k=text.random.randint(0, 2))
    shape = [*lead, *(n if n > 1 else text.random.choice([1, 2, 5]) for n in a.shape)]
    if prod(shape) <= 600:
        text.add(f"vector.broadcast {a.name} : {a.type} to {{}}", shape, a.dtype)


def reduce(text):
    a = text.pick()
    dims = text.random.sample(range(len(a.shape)), text.random.randint(1, len(a.shape)))
    shape = [n for dim, n in enumerate(a.shape) if dim not in dims]
    kinds = ["add", "mul", "and", "or", "xor", "maxsi", "minsi", "maxui", "minui"]
    if a.is_float:
        kinds = ["add", "maximumf", "minimumf", "maxnumf"]
    kind, dims = text.random.choice(kinds), sorted(dims)
    if shape:
        acc = text.constant(shape, a.dtype)
        op = f"vector.multi_reduction <{kind}>, {a.name}, {acc.name} {dims}"
        text.clamp(text.add(f"{op} : {a.type} to {{}}", shape, a.dtype))
        return
    number = text.number(a.dtype)
    suffix = "" if a.dtype == "i1" else f" : {a.dtype}"
    acc = text.scalar(f"arith.constant {number}{suffix}")
    op = f"vector.multi_reduction <{kind}>, {a.name}, {acc} {dims}"
    _spread(text, text.scalar(f"{op} : {a.type} to {a.dtype}"), a.dtype)


def _spread(text, scalar, dtype):
    shape = text.shape(60)
    text.clamp(text.add(f"vector.broadcast {scalar} : {dtype} to {{}}", shape, dtype))


def _position(text, shape):
    return ", ".join(
        str(text.random.randrange(n))
        if text.random.random() < 0.6
        else text.index(text.random.randrange(n))
        for n in shape
    )


def extract(text):
    a = text.pick()
    rank = text.random.randint(1, len(a.shape))
    op = f"vector.extract {a.name}[{_position(text, a.shape[:rank])}]"
    if rank < len(a.shape):
        text.add(f"{op} : {{}} from {a.type}", a.shape[rank:], a.dtype)
    else:
        scalar = text.scalar(f"{op} : {a.dtype} from {a.type}")
        _spread(text, scalar, a.dtype)


def insert(text):
    a = text.pick(lambda value: len(value.shape) > 1)
    if a is not None:
        rank = text.random.randint(1, len(a.shape) - 1)
        part = text.constant(a.shape[rank:], a.dtype)
        place = _position(text, a.shape[:rank])
        op = f"vector.insert {part.name}, {a.name}[{place}] : {part.type} into {{}}"
        text.add(op, a.shape, a.dtype)


def cut(text):
    """Take a slice out, and put it somewhere else."""
    a = text.pick()
    sizes = [text.random.randint(1, n) for n in a.shape]
    first, second = (
        [text.random.randint(0, n - size) for n, size in zip(a.shape, sizes)]
        for _ in range(2)
    )
    ones = f"strides = {[1] * len(sizes)}"
    op = f"vector.extract_strided_slice {a.name} {{offsets = {first}, sizes = {sizes}, "
    part = text.add(f"{op}{ones}}} : {a.type} to {{}}", sizes, a.dtype)
    op = f"vector.insert_strided_slice {part.name}, {a.name} {{offsets = {second}, "
    text.add(f"{op}{ones}}} : {part.type} into {{}}", a.shape, a.dtype)


def shuffle(text):
    a = text.pick(lambda value: prod(value.shape) < 200)
    if a is not None:
        b, length = text.twin(a), text.random.randint(1, 6)
        rows = text.random.choices(range(2 * a.shape[0]), k=length)
        op = f"vector.shuffle {a.name}, {b.name} {rows} : {a.type}, {b.type}"
        text.add(op, (length, *a.shape[1:]), a.dtype)


def bitcast(text):
    a, to = text.pick(lambda v: v.dtype in INTEGERS), text.random.choice(INTEGERS)
    if a is None:
        return
    last, rest = divmod(a.shape[-1] * int(a.dtype[1:]), int(to[1:]))
    if rest == 0:
        shape = (*a.shape[:-1], last)
        text.add(f"vector.bitcast {a.name} : {a.type} to {{}}", shape, to)


def mask(text):
    a = text.pick()
    other = text.constant(a.shape, a.dtype)
    bounds = [text.index(text.random.randint(-1, n + 1)) for n in a.shape]
    op = f"vector.create_mask {', '.join(bounds)} : {{}}"
    _select(text, text.add(op, a.shape, "i1"), a, other)


def memory(text):
    """Store a vector, and read part of it, or past its end."""
    a = text.pick()
    buffer = text.scalar(f"memref.alloca() : {a.memory}")
    place = f"{buffer}[{text.zeros(a)}] : {a.memory}"
    text.line(f"vector.store {a.name}, {place}, {a.type}")
    rank = text.random.randint(1, len(a.shape))
    lead = [text.random.randrange(n) for n in a.shape[: len(a.shape) - rank]]
    shape = [text.random.randint(1, n) for n in a.shape[len(a.shape) - rank :]]
    least = [text.random.randint(0, n) for n in a.shape[len(a.shape) - rank :]]
    suffix = "" if a.dtype == "i1" else f" : {a.dtype}"
    padding = text.scalar(f"arith.constant {text.number(a.dtype)}{suffix}")
    where = ", ".join(text.index(n) for n in [*lead, *least])
    op = f"vector.transfer_read {buffer}[{where}], {padding} : {a.memory}, {{}}"
    text.add(op, shape, a.dtype)


def tile(text):
    """Store through one tile and load through another; either may stick out."""
    a = text.pick(lambda value: len(value.shape) == 2 and value.dtype != "i1")
    if a is None:
        return
    whole = text.constant([n + text.random.randint(0, 3) for n in a.shape], a.dtype)
    buffer = text.scalar(f"memref.alloca() : {whole.memory}")
    place = f"{buffer}[%zero, %zero] : {whole.memory}"
    text.line(f"vector.store {whole.name}, {place}, {whole.type}")
    shape = (text.random.randint(1, 8), text.random.randint(1, 20))
    types = [f"!xetile.tile<{m}x{n}x{a.dtype}>" for m, n in (a.shape, shape)]
    tiles: list[str] = []
    for type_ in types:
        where = ", ".join(text.index(text.random.randint(-2, 3)) for _ in shape)
        op = f"xetile.init_tile {buffer}[{where}] : {whole.memory} -> {type_}"
        tiles.append(text.scalar(op))
    text.line(f"xetile.store_tile {a.name}, {tiles[0]} : {a.type}, {types[0]}")
    padding = f"{{padding = {text.number(a.dtype)} : {a.dtype}}}"
    op = f"xetile.load_tile {tiles[1]} {padding} : {types[1]} -> "
    text.add(op + "{}", shape, a.dtype)


def product(text):
    a = text.pick(
        lambda v: len(v.shape) == 2 and v.dtype in ("f16", "f32", "i8", "f64")
    )
    if a is None:
        return
    results = {"i8": ["i32"], "f16": ["f16", "f32"]}.get(a.dtype, [a.dtype])
    a, dtype = text.clamp(a), text.random.choice(results)
    columns = text.random.choice([1, 3, 8, 33])
    b = text.constant((a.shape[1], columns), a.dtype)
    c = text.constant((a.shape[0], columns), dtype)
    op = f"xetile.tile_mma {a.name}, {b.name}, {c.name} : {a.type}, {b.type}, {c.type}"
    text.clamp(text.add(f"{op} -> {{}}", c.shape, dtype))


def branch(text):
    a = text.pick()
    number = text.index(text.random.randint(0, 1))
    condition = text.scalar(f"arith.cmpi eq, {number}, %zero : index")
    name, known = text.name(), list(text.values)
    for head in (f"{name} = scf.if {condition} -> ({a.type}) {{", "} else {"):
        text.line(head)
        text.step()
        text.line(f"scf.yield {text.twin(a).name} : {a.type}")
        text.values = list(known)
    text.line("}")
    text.values.append(type(a)(name, a.shape, a.dtype))


def loop(text):
    a = text.pick()
    name, carried, known = text.name(), text.name(), list(text.values)
    count, one = text.index(text.random.randint(0, 3)), text.index(1)
    head = f"scf.for {text.name()} = %zero to {count} step {one}"
    text.line(f"{name} = {head} iter_args({carried} = {a.name}) -> ({a.type}) {{")
    text.values.append(type(a)(carried, a.shape, a.dtype))
    for _ in range(text.random.randint(1, 3)):
        text.step()
    text.line(f"scf.yield {text.twin(a).name} : {a.type}\n}}")
    text.values = [*known, type(a)(name, a.shape, a.dtype)]


STEPS = [
    *[binary] * 4,
    *[unary, compare, convert, convert],
    *[shape_cast, transpose, broadcast, reduce] * 2,
    *[extract, insert, cut, shuffle, bitcast, mask],
    *[memory, tile] * 2,
    product,
]
WITH_REGIONS = [branch, loop]
