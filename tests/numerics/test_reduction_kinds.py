"""Every kind of reduction gives the same number on every backend, to its last bit.

NaN, infinities and zeros with a sign are where implementations differ. The rows are
such that no order of combining changes a result: any difference is a fault. Not tried:
`min` and `max` of zeros of both signs, which may give either (docs/xetile.md).
"""

import itertools

import ml_dtypes
import numpy as np
import pytest

import xetl
from xetl.dialects.reduction_kinds import FLOAT_KINDS, INTEGER_KINDS

SLOW = pytest.mark.slow
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
FLOATS["f64"] = np.float64
INTEGERS = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32}
INTEGERS["i64"] = np.int64
TYPES = FLOATS | INTEGERS
SHAPES = [(12, 1), (12, 37)]
WIDTHS = ("f16", "bf16", "f32", "i1", "i8", "i64")
QUICK = {
    "reference": {(name, shape) for name in TYPES for shape in SHAPES},
    "cpu": {("f32", SHAPES[0]), *((name, SHAPES[1]) for name in WIDTHS)},
    "xegpu": {("f32", SHAPES[0]), ("i1", SHAPES[0])},
}
"""The others, of a second or a minute each, are slow tests."""
CASES = [
    pytest.param(
        *(name, shape, backend),
        marks=() if (name, shape) in QUICK[backend] else SLOW,
    )
    for backend in ("reference", "cpu", "xegpu")
    for shape in SHAPES
    for name in TYPES
]
STEPS = ("rows", "columns", "all", "scan0", "scan1", "old", "updated")
NAN, INF = np.nan, np.inf

FUNCTIONS = {
    **{"add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or},
    **{"xor": np.bitwise_xor, "minsi": np.minimum, "maxsi": np.maximum},
    **{"minnumf": np.fmin, "maxnumf": np.fmax},
    **{"minimumf": np.minimum, "maximumf": np.maximum},
}


def combined(kind, left, right):
    """Two arrays combined by what MLIR says of a kind."""
    if left.dtype == np.bool_:  # a bit counts modulo 2; as a signed number true is -1
        wide = np.where(left, -1, 0).astype(np.int8), np.where(right, -1, 0)
        if kind in ("add", "mul"):
            return FUNCTIONS[{"add": "xor", "mul": "and"}[kind]](left, right)
        return combined(kind, wide[0], wide[1].astype(np.int8)) != 0
    if kind in ("minui", "maxui"):
        sign = left.dtype.type(np.iinfo(left.dtype).min)
        signed = kind.replace("ui", "si")
        return combined(signed, left ^ sign, right ^ sign) ^ sign
    wide = np.float32 if left.dtype.itemsize == 2 and left.dtype.kind != "i" else None
    with np.errstate(all="ignore"):
        return FUNCTIONS[kind](left, right, dtype=wide).astype(left.dtype)


def running(kind, x, axis):
    """The first element, and each combined with what came before it."""
    lines = np.moveaxis(x, axis, 0)
    found = [lines[0]]
    for line in lines[1:]:
        found.append(combined(kind, found[-1], line))
    return np.moveaxis(np.stack(found), 0, axis)


def expected(kind, x, memory):
    """What each of `STEPS` gives, without any identity: these are all not empty."""
    rows, columns = running(kind, x, 1), running(kind, x, 0)
    whole = running(kind, rows[:, -1:], 0)[-1:]
    updated = combined(kind, memory, x)
    return rows[:, -1:], columns[-1:], whole, columns, rows, memory, updated


def data(name, shape, kind):
    """Rows of one special number each, and of several."""
    rows, columns = shape
    rng = np.random.default_rng(7)
    if name in INTEGERS:
        dtype = np.dtype(INTEGERS[name])
        bits = rng.integers(0, 256, (rows, columns, dtype.itemsize), np.uint8)
        if dtype == np.bool_:
            bits &= 1
        bits[0], bits[1] = 0, (1 if dtype == np.bool_ else 255)
        return bits.view(dtype).reshape(shape)
    x = rng.choice([-1.0, 1.0], shape)
    for row, value in enumerate(
        (NAN, -0.0, INF, -INF, 0.0, -2.0 if kind == "add" else -1)
    ):
        x[row] = value
    x[6, ::3] = NAN
    x[7, ::2] = INF
    x[8, ::2], x[8, 1::2] = INF, -INF
    x[9, ::4] = -INF
    x[10, -1] = NAN
    if kind in ("add", "mul"):
        x[11, ::2], x[11, 1::2] = -0.0, 0.0
    return x.astype(FLOATS[name])


def text(name, shape, kinds):
    """A module of a kernel for each kind; it stores what `STEPS` are."""
    rows, columns = shape
    sizes = [(rows, 1), (1, columns), (1, 1), *[shape] * 4]
    parts = ["module {", "gpu.module @m {"]
    for kind in kinds:
        types = [f"memref<{r}x{c}x{name}>" for r, c in sizes]
        args = ", ".join(f"%o{n}: {type_}" for n, type_ in enumerate(types))
        matrix, m = f"memref<{rows}x{columns}x{name}>", f"{rows}x{columns}x{name}"
        v = f"vector<{m}>"
        of = {0: f"vector<1x{columns}x{name}>", 1: f"vector<{rows}x1x{name}>"}
        parts.append(f"gpu.func @{kind}(%x: {matrix}, {args}) kernel {{")
        parts.append(f"%t = xetile.init_tile %x[0, 0] : {matrix} -> !xetile.tile<{m}>")
        parts.append(f"%v = xetile.load_tile %t : !xetile.tile<{m}> -> {v}")
        parts += [
            f"%r0 = xetile.tile_reduce <{kind}>, %v [1] : {v} -> {of[1]}",
            f"%r1 = xetile.tile_reduce <{kind}>, %v [0] : {v} -> {of[0]}",
            f"%r2 = xetile.tile_reduce <{kind}>, %v [0, 1] : {v} -> vector<1x1x{name}>",
            f"%r3 = xetile.tile_scan <{kind}>, %v [0] : {v}",
            f"%r4 = xetile.tile_scan <{kind}>, %v [1] : {v}",
        ]
        for n, (r, c) in enumerate(sizes[:6]):
            tile = f"{types[n]} -> !xetile.tile<{r}x{c}x{name}>"
            parts.append(f"%u{n} = xetile.init_tile %o{n}[0, 0] : {tile}")
        parts.append(
            f"%u6 = xetile.init_tile %o6[0, 0] : {matrix} -> !xetile.tile<{m}>"
        )
        parts.append(
            f"%r5 = xetile.atomic_rmw_tile <{kind}> %v, %u6 "
            f": {v}, !xetile.tile<{m}> -> {v}"
        )
        for n, (r, c) in enumerate(sizes[:6]):
            e = f"{r}x{c}x{name}"
            parts.append(
                f"xetile.store_tile %r{n}, %u{n} : vector<{e}>, !xetile.tile<{e}>"
            )
        parts.append("gpu.return }")
    return "\n".join([*parts, "} }"])


def same(found, wanted):
    """Equal to the last bit, but for which NaN it is."""
    if found.dtype.kind in "ib":
        return np.array_equal(found, wanted)
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    nan = np.isnan(a) & np.isnan(b)
    return bool((nan | ((a == b) & (np.signbit(a) == np.signbit(b)))).all())


def kinds_of(name):
    return FLOAT_KINDS if name in FLOATS else INTEGER_KINDS


@pytest.mark.parametrize(("name", "shape", "backend"), CASES)
def test_every_kind_on_every_backend(name, shape, backend):
    module = xetl.load_mlir(text(name, shape, kinds_of(name)))
    wrong = []
    for kind in kinds_of(name):
        x = data(name, shape, kind)
        memory = np.ascontiguousarray(np.roll(x, 3, 0))
        if kind.startswith(("min", "max")) and name in FLOATS:
            memory[memory == 0] = 1  # zeros of both signs would meet
        wanted = expected(kind, x, memory)
        outs = [np.zeros(w.shape, x.dtype) for w in wanted]
        outs[6][...] = memory
        module[kind][1](x, *outs, backend=backend)
        for step, out, want in zip(STEPS, outs, wanted):
            if not same(out, want):
                wrong.append(f"{kind} {step}: {out.tolist()} != {want.tolist()}")
    assert not wrong, "\n".join(wrong)


def shared_text(name, kinds):
    """Rows and columns that four subgroups combine together, of 16 x 64."""
    parts = [
        "#m = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 32]>",
        "#r = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 1]>",
        "#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [1, 32]>",
    ]
    for which, shape in (("m", "16x64"), ("r", "16x1"), ("c", "1x64")):
        attr = f"#xetile.tile_attr<wg_map = #{which}>"
        parts.append(f"!{which} = !xetile.tile<{shape}x{name}, {attr}>")
    parts += ["module {", "gpu.module @m {"]
    v, row = f"vector<16x64x{name}>", f"vector<16x1x{name}>"
    column = f"vector<1x64x{name}>"
    for kind in kinds:
        m, r, c = (f"memref<{s}x{name}>" for s in ("16x64", "16x1", "1x64"))
        parts.append(
            f"gpu.func @{kind}(%x: {m}, %a: {r}, %b: {c}) kernel "
            'attributes {xetile.level = "workgroup"} {'
        )
        parts += [
            f"%t = xetile.init_tile %x[0, 0] : {m} -> !m",
            f"%ta = xetile.init_tile %a[0, 0] : {r} -> !r",
            f"%tb = xetile.init_tile %b[0, 0] : {c} -> !c",
            f"%v = xetile.load_tile %t : !m -> {v}",
            f"%r0 = xetile.tile_reduce <{kind}>, %v [1] : {v} -> {row}",
            f"%r1 = xetile.tile_reduce <{kind}>, %v [0] : {v} -> {column}",
            f"xetile.store_tile %r0, %ta : {row}, !r",
            f"xetile.store_tile %r1, %tb : {column}, !c",
            "gpu.return }",
        ]
    return "\n".join([*parts, "} }"])


# Who has one of 16 rows more than once stores it as well: the warning says so.
@pytest.mark.filterwarnings("ignore::xetl.errors.TileMapWarning")
@pytest.mark.parametrize(
    ("name", "backend"),
    [
        *itertools.product(("f32", "bf16", "i1", "i32"), ("reference", "cpu")),
        ("f32", "xegpu"),
        *(pytest.param(name, "xegpu", marks=SLOW) for name in ("bf16", "i1", "i32")),
    ],
)
def test_across_subgroups(name, backend):
    module = xetl.load_mlir(shared_text(name, kinds_of(name)))
    for kind in kinds_of(name):
        x = data(name, (16, 64), kind)
        wanted = expected(kind, x, x)[:2]
        outs = [np.zeros(w.shape, x.dtype) for w in wanted]
        module[kind][1](x, *outs, backend=backend)
        for out, want in zip(outs, wanted):
            assert same(out, want), f"{kind}: {out.tolist()} != {want.tolist()}"
