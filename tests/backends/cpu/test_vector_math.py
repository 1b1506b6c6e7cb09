"""Elementary functions: ulp errors against wider arithmetic, and the special values."""

from functools import cache
from time import perf_counter

import numpy as np
import pytest
from native_harness import compile_functions, emit_object, new_module, undefined_symbols
from scipy import special

from xetl_cpu.llvm import I64, PTR, VOID, Builder, define, element_type, vector
from xetl_cpu.targets import find_target
from xetl_cpu.vector_math import FUNCTIONS, emit_math
from xetl_cpu.vector_math.trigonometry import two_over_pi_bits

NUMPY = {"f32": np.float32, "f64": np.float64}
TARGETS = ["avx2", "avx512"]
TRUE = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "tanh": np.tanh,
    "erf": lambda x: special.erf(x.astype(np.float64)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "log10": np.log10,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "cbrt": np.cbrt,
}
LIMIT = {"exp": 2, "exp2": 2, "rsqrt": 2, "log": 3, "log2": 4, "tanh": 4, "erf": 4}
LIMIT |= {"sin": 3, "cos": 3, "tan": 5, "asin": 4, "acos": 4, "atan": 3}
LIMIT |= {"expm1": 3, "log1p": 6, "log10": 2, "sinh": 6, "cosh": 6, "cbrt": 1}
inf, nan = np.inf, np.nan
SPECIAL = {
    "exp": [
        (0, 1),
        (-0.0, 1),
        (inf, inf),
        (-inf, 0),
        (nan, nan),
        (1e4, inf),
        (-1e4, 0),
    ],
    "exp2": [
        (0, 1),
        (10, 1024),
        (inf, inf),
        (-inf, 0),
        (nan, nan),
        (2000, inf),
        (-2000, 0),
    ],
    "log": [
        (0, -inf),
        (-0.0, -inf),
        (1, 0),
        (inf, inf),
        (-inf, nan),
        (-1, nan),
        (nan, nan),
    ],
    "log2": [
        (0, -inf),
        (1, 0),
        (8, 3),
        (0.25, -2),
        (inf, inf),
        (-inf, nan),
        (-1, nan),
        (nan, nan),
    ],
    "tanh": [(0, 0), (-0.0, -0.0), (inf, 1), (-inf, -1), (nan, nan), (1e30, 1)],
    "erf": [(0, 0), (-0.0, -0.0), (inf, 1), (-inf, -1), (nan, nan), (1e30, 1)],
    "rsqrt": [(0, inf), (4, 0.5), (inf, 0), (-1, nan), (nan, nan)],
    "sin": [(0, 0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)],
    "cos": [(0, 1), (-0.0, 1), (inf, nan), (-inf, nan), (nan, nan)],
    "tan": [(0, 0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)],
    "asin": [(0, 0), (-0.0, -0.0), (1.5, nan), (-inf, nan), (nan, nan)],
    "acos": [(1, 0), (1.5, nan), (-inf, nan), (nan, nan)],
    "atan": [(0, 0), (-0.0, -0.0), (nan, nan)],
    "expm1": [(0, 0), (-0.0, -0.0), (inf, inf), (-inf, -1), (nan, nan), (1e4, inf)],
    "log1p": [
        (0, 0),
        (-0.0, -0.0),
        (-1, -inf),
        (inf, inf),
        (-inf, nan),
        (-2, nan),
        (nan, nan),
    ],
    "log10": [(0, -inf), (-0.0, -inf), (inf, inf), (-1, nan), (nan, nan)]
    + [(10**n, n) for n in range(11)],
    "sinh": [(0, 0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (nan, nan)],
    "cosh": [(0, 1), (-0.0, 1), (inf, inf), (-inf, inf), (nan, nan)],
    "cbrt": [
        (0, 0),
        (-0.0, -0.0),
        (inf, inf),
        (-inf, -inf),
        (nan, nan),
        *[(n**3, n) for n in range(-40, 40) if n],
    ],
}


SPECIAL["exp2_approximate"] = SPECIAL["exp2"]


def emit_map(module, target, name, dtype, lanes):
    """A test function: ``void(n, x, y, out)``, n a multiple of the lanes."""
    formula = emit_math(module, target, name, dtype, lanes)
    element = element_type(dtype)
    wide = vector(element, lanes)
    params = [("n", I64), ("x", PTR), ("y", PTR), ("out", PTR)]
    function = define(module, f"map_{name}_{dtype}_{lanes}", VOID, params)
    n, x, y, out = function.args
    builder = Builder(function.append_basic_block("entry"))
    with builder.counted_loop(n, step=lanes) as loop:
        places = [builder.offset(p, element, loop.index) for p in (x, y, out)]
        taken = places[: len(formula.args)]
        inputs = [builder.load(place, typ=wide, align=4) for place in taken]
        builder.store(builder.call(formula, inputs), places[2], 4)
    builder.ret_void()
    return function


@cache
def compiled(target_name, name, dtype, lanes):
    target = find_target(target_name)
    if not target.runs_here:
        pytest.skip(f"this machine is no {target_name}")
    [function] = compile_functions(
        target, [lambda module: emit_map(module, target, name, dtype, lanes)]
    )
    return function


def apply(function, dtype, *inputs):
    size = len(inputs[0])
    padded = [np.ones(size + -size % 64, NUMPY[dtype]) for _ in range(3)]
    for to, values in zip(padded, inputs):
        to[:size] = values
    function(len(padded[0]), *padded)
    return padded[2][:size]


def ulp_error(got, want):
    """In units of the last place of the true result; subnormals count as the least."""
    dtype = got.dtype.type
    want = want.astype(np.longdouble)
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(dtype).tiny))
        error = np.abs(got - want) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(want))
    return np.where(same, 0, np.where(np.isnan(error), inf, error))


@cache
def inputs(dtype):
    """All binades at random, and the interesting range densely."""
    kind = NUMPY[dtype]
    bits = np.uint32 if dtype == "f32" else np.uint64
    rng = np.random.default_rng(0)
    anything = rng.integers(0, np.iinfo(bits).max, 1 << 16, bits).view(kind)
    anything[np.isnan(anything)] = nan  # NumPy warns of signalling ones
    near = [np.linspace(-end, end, 1 << 16) for end in (1.5, 12, 110, 1100)]
    return np.concatenate([anything, *near]).astype(kind)


def every_lane_count(dtype, target_name):
    native = find_target(target_name).lanes(dtype)
    return (1, native // 2, native, 2 * native)


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("name", TRUE)
def test_error_stays_within_its_bound(target_name, dtype, name):
    x = inputs(dtype)
    with np.errstate(all="ignore"):
        want = TRUE[name](x.astype(np.longdouble))
    for lanes in every_lane_count(dtype, target_name):
        got = apply(compiled(target_name, name, dtype, lanes), dtype, x)
        error = ulp_error(got, want)
        worst = int(np.argmax(error))
        assert error[worst] <= LIMIT[name], (lanes, x[worst], got[worst], want[worst])


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize(("name", "start"), [("erf", 3), ("tanh", 7)])
def test_nothing_is_more_than_one(target_name, name, start):
    """All numbers of f32 from where a result is nearly 1 to where it is 1."""
    first, last = np.array([start, 10], np.float32).view(np.uint32)
    x = np.arange(first, last, dtype=np.uint32).view(np.float32)
    lanes = find_target(target_name).lanes("f32")
    got = apply(compiled(target_name, name, "f32", lanes), "f32", x)
    assert got.max() == got[-1] == 1


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("dtype", NUMPY)
def test_approximate_powers(target_name, dtype):
    x = np.linspace(-100, 100, 1 << 16).astype(NUMPY[dtype])
    whole = np.arange(-100, 100).astype(NUMPY[dtype])
    for lanes in every_lane_count(dtype, target_name):
        function = compiled(target_name, "exp2_approximate", dtype, lanes)
        got, want = apply(function, dtype, x), np.exp2(x.astype(np.longdouble))
        assert abs(got / want - 1).max() < 1e-4
        assert np.array_equal(apply(function, dtype, whole), np.exp2(whole))


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("how", ["", "_approximate"])
def test_powers_of_what_is_not_positive(dtype, how):
    """Those of `exp2`, subnormals but for one of them; NaNs of all bits are NaNs."""
    number, width = NUMPY[dtype], np.dtype(NUMPY[dtype]).itemsize
    nans = np.array(inf, number).view(f"u{width}") + np.arange(1, 1024, dtype="u4")
    nans = nans.astype(f"u{width}").view(number)
    special = [0, -0.0, -inf, -1e30, 63]
    x = np.concatenate([np.linspace(-1100, 5, 1 << 18), special]).astype(number)
    x = np.concatenate([x, nans])
    least = np.finfo(number).smallest_subnormal
    for lanes in every_lane_count(dtype, "avx2"):
        names = f"exp2{how}", f"exp2_nonpositive{how}"
        functions = [compiled("avx2", name, dtype, lanes) for name in names]
        want, got = (apply(function, dtype, x) for function in functions)
        np.testing.assert_allclose(got, want, rtol=0, atol=least)


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(target_name, dtype, name):
    x, want = np.array(SPECIAL[name], NUMPY[dtype]).T.copy()
    for lanes in every_lane_count(dtype, target_name):
        got = apply(compiled(target_name, name, dtype, lanes), dtype, x)
        assert np.array_equal(got, want, equal_nan=True), (lanes, got)
        kept = ~np.isnan(want)
        assert np.array_equal(np.signbit(got[kept]), np.signbit(want[kept])), lanes


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("dtype", NUMPY)
def test_nothing_outside_is_called(target_name, dtype):
    target = find_target(target_name)
    for lanes in every_lane_count(dtype, target_name):
        module = new_module()
        for name in FUNCTIONS:
            function = emit_math(module, target, name, dtype, lanes)
            assert emit_math(module, target, name, dtype, lanes) is function
            assert function.linkage == "internal"
            assert "alwaysinline" in function.attributes
            function.linkage = ""
        # C's fmod is for quotients of 2**52 and more.
        needed = set(undefined_symbols(emit_object(target, module)))
        assert needed == {"fmodf" if dtype == "f32" else "fmod"}


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_near_multiples_of_a_quarter_turn(target_name, name):
    # The nearest f64 to n pi / 2: what is left is tiny, and must be right.
    turns = np.concatenate([np.arange(1, 4000), 2 ** np.arange(12, 62)])
    x = (turns.astype(np.longdouble) * np.longdouble(np.pi) / 2).astype(np.float64)
    worst_known = [6381956970095103 * 2.0**797]  # 2**-61 off: the nearest of all f64
    x = np.concatenate([x, -x, worst_known, np.full(63, 1e300)])
    want = TRUE[name](x.astype(np.longdouble))
    got = apply(compiled(target_name, name, "f64", 4), "f64", x)
    assert ulp_error(got, want).max() <= 3


def test_two_over_pi():
    known = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561
    assert two_over_pi_bits(256) == known
    assert two_over_pi_bits(1216) >> 960 == known


POWERS = [
    (2, 10), (2, -1), (-2, 3), (-2, 2), (-2, 0.5), (0, 0), (0, 2), (0, -1), (-0.0, 3),
    (-0.0, -3), (-0.0, -2), (nan, 0), (1, nan), (nan, 1), (2, nan), (1, inf), (-1, inf),
    (-1, -inf), (2, inf), (2, -inf), (0.5, inf), (0.5, -inf), (inf, 2), (inf, -2),
    (-inf, 3), (-inf, 2), (-inf, -3), (-inf, 0.5), (0, inf), (0, -inf), (-3, 1e30),
    (1e30, 1e30), (1e-30, 1e30),
]  # fmt: skip


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("dtype", NUMPY)
def test_pow(target_name, dtype):
    x = inputs(dtype)
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.permutation(x[: 1 << 16]), rng.uniform(-9, 9, 4 << 16)])
    y[1 << 17 :: 3] = np.round(y[1 << 17 :: 3])
    y = y.astype(NUMPY[dtype])
    x, y = np.append(x, np.abs(x[: 1 << 16])), np.append(y, y[-(1 << 16) :])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    limit = 1 if dtype == "f32" else 16
    for lanes in every_lane_count(dtype, target_name):
        got = apply(compiled(target_name, "pow", dtype, lanes), dtype, x, y)
        error = ulp_error(got, want)
        worst = int(np.argmax(error))
        assert error[worst] <= limit, (lanes, x[worst], y[worst], got[worst])


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("dtype", NUMPY)
def test_pow_of_special_values(target_name, dtype):
    x, y = np.array(POWERS, NUMPY[dtype]).T.copy()
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    got = apply(compiled(target_name, "pow", dtype, 4), dtype, x, y)
    assert np.array_equal(got, want, equal_nan=True)
    kept = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[kept]), np.signbit(want[kept]))


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("dtype", NUMPY)
def test_atan2(target_name, dtype):
    kind, x = NUMPY[dtype], inputs(dtype)
    y = np.random.default_rng(1).permutation(x)
    ends = [0, 1, 2.5, 1e-30, 1e30, np.finfo(kind).max, np.finfo(kind).tiny, inf, nan]
    few = np.array([*ends, *(-each for each in ends)], kind)
    x, y = np.append(x, np.repeat(few, len(few))), np.append(y, np.tile(few, len(few)))
    want = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    for lanes in every_lane_count(dtype, target_name):
        got = apply(compiled(target_name, "atan2", dtype, lanes), dtype, y, x)
        error = ulp_error(got, want)
        worst = int(np.argmax(error))
        assert error[worst] <= 4, (lanes, y[worst], x[worst], got[worst])
        kept = ~np.isnan(want)
        assert np.array_equal(np.signbit(got[kept]), np.signbit(want[kept])), lanes


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("dtype", NUMPY)
def test_fmod_is_exact(target_name, dtype):
    kind, x = NUMPY[dtype], inputs(dtype)
    rng = np.random.default_rng(1)
    y = rng.permutation(x)
    near = x * rng.uniform(-1, 1, len(x)).astype(kind)  # quotients of a few units
    whole = np.round(rng.uniform(-(2**20), 2**20, 1 << 16)).astype(kind)
    ends = [0, 1, 2.5, 1e-30, 1e30, np.finfo(kind).max, np.finfo(kind).tiny, inf, nan]
    few = np.array([*ends, *(-each for each in ends)], kind)
    parts = np.where(whole[::-1] == 0, 1, whole[::-1])
    x = np.concatenate([x, x, whole * parts, np.repeat(few, len(few))]).astype(kind)
    y = np.concatenate([y, near, parts, np.tile(few, len(few))]).astype(kind)
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    for lanes in every_lane_count(dtype, target_name):
        got = apply(compiled(target_name, "fmod", dtype, lanes), dtype, x, y)
        assert np.array_equal(got, want, equal_nan=True), lanes
        kept = ~np.isnan(want)
        assert np.array_equal(np.signbit(got[kept]), np.signbit(want[kept])), lanes


def test_factors_are_in_memory_where_registers_are_few():
    counts = {}
    for name in TARGETS:
        target, module = find_target(name), new_module()
        emit_map(module, target, "exp2", "f32", target.lanes("f32"))
        counts[name] = str(module).count("weak hidden constant")
    assert counts["avx2"] > 4
    assert counts["avx512"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exp", "exp2"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_lanes_that_become_zero_cost_no_more(target, dtype, name):
    """Intel's cores take a hundred cycles for a product that underflows."""
    function = compiled(target, name, dtype, find_target(target).lanes(dtype))
    inputs = [np.full(4096, x, NUMPY[dtype]) for x in (-1.0, -inf, -1000.0)]
    out, unused = np.empty_like(inputs[0]), inputs[0]
    best = [inf] * len(inputs)
    for _ in range(200):
        for index, x in enumerate(inputs):
            start = perf_counter()
            function(len(x), x, unused, out)
            best[index] = min(best[index], perf_counter() - start)
    assert max(best) < 2 * best[0]
