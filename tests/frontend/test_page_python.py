"""docs/language.md, section 2: the Python subset, compile time, debugging."""

import linecache
import textwrap

import numpy as np
import pytest
from page import both, matrix, proves

from xetl import xetile
from xetl.errors import CompileError, ControlFlowError, LaunchError
from xetl.frontend import build_module
from xetl.language.dtypes import f32 as f32_dtype
from xetl.language.signature import ArrayParam, Signature
from xetl.xetile import cdiv, constexpr, f32, i64

SCALE = 3
TABLE = (2, 5, 7)
FACTORS = [1.5, 2.5]
NUMPY_CONSTANT = np.float32(0.5)


def square(x):
    """Two statements and a docstring."""
    y: int = x
    y *= x
    return y


def offset_by(x, by=SCALE, *, times=1):
    return x + by * times


squared = xetile.function(square)
moved = xetile.function(offset_by)


@xetile.kernel(grid=1)
def scalars(OUT, n, x, flag, F, COUNT: constexpr):
    values = F(n, x, flag)
    for i in xetile.static_range(COUNT):
        value = xetile.full((1,), values[i], xetile.f64)
        xetile.store_tile(value, xetile.init_tile(OUT, [i], (1,)))


def results(function, backend, n=7, x=2.5, flag=True):
    """A tuple of numbers that a function gives, as a kernel computes it."""
    expected = function(n, x, flag)
    out = np.full(len(expected), np.nan)
    f = xetile.function(function)
    scalars(out, n, x, flag, f, COUNT=len(expected), backend=backend)
    return out, expected


def agrees(function, backend, **given):
    found, expected = results(function, backend, **given)
    np.testing.assert_allclose(found, [float(e) for e in expected], rtol=1e-15)


@proves("Python subset")
@both
def test_operators_on_scalars(backend):
    for group in SCALARS:
        agrees(group, backend)
        agrees(group, backend, n=-4, x=-1.25, flag=False)


def arithmetic_of_ints(n, x, flag):
    m = n - 10
    divided = (n / m, n // m, n % m, m // n, m % n)
    return (n + m, n - m, n * m, *divided, n**2, n**3, n**0 // 2, n**21 % 1000)


def bits_of_ints(n, x, flag):
    m = n - 10
    return (n & 6, n | 8, n ^ m, ~n, n << 3, m >> 1, -n, +n, abs(m), 2**0.5)


def floats(n, x, flag):
    m = n - 10
    y = x + 10
    return (x + n, x * m, x / 3, x // 1, x % m, m % y, x**2, -x, abs(-x), y**0.5)


def conditions(n, x, flag):
    m = n - 10
    return (
        n < m,
        n >= 7,
        3 < n <= 7,
        n == 7.0,
        x != 2.5,
        not flag,
        flag and n > 3,
        flag or n > 3 or x > 0,
        flag & (n > 3),
        flag ^ (n > 3),
        (n > 3) + 1,
        flag * 3,
        bool(n),
    )


def functions_of_operators(n, x, flag):
    return (pow(n, 2), pow(x, 2), *divmod(n, 3), *divmod(x, 2), *divmod(7, 2))


SCALARS = [
    arithmetic_of_ints,
    bits_of_ints,
    floats,
    conditions,
    functions_of_operators,
]


@proves("Python subset")
@both
def test_choices_of_scalars(backend):
    def choosing(n, x, flag):
        m = n - 10
        a, (b, c) = m, (n, x)
        (a, b), c = (b, a), c + a
        return (
            min(n, m),
            max(n, m, 3),
            max((n, m)),
            int(x),
            float(n),
            a,
            b,
            c,
            n and m,
        )

    def ternaries(n, x, flag):
        m = n - 10
        return (n if flag else m, x if n < 3 else m, x or 3.5, (k := n + 1), k)

    agrees(choosing, backend)
    agrees(ternaries, backend)


@proves("Python subset")
@both
def test_sequences(backend):
    agrees(loops_over_tuples, backend)
    agrees(loops_over_tuples, backend, n=0)
    agrees(tuples_of_numbers, backend)
    agrees(tuples_of_numbers, backend, n=-3, x=-0.5, flag=False)


def loops_over_tuples(n, x, flag):
    total, pairs = 0, ()
    for i, factor in enumerate(TABLE, 1):
        total = total * 10 + i * factor
        pairs = pairs + (n + i,)  # noqa: RUF005
    for a, b in zip(TABLE, reversed(pairs)):
        total = total + a * b
    first, *rest = pairs
    last = -1
    for last in range(n):  # noqa: B007
        pass
    return (total, first, rest[0], len(rest), sum(pairs), last, (pairs * 2)[3])


def tuples_of_numbers(n, x, flag):
    return (
        n in (1, 7, n + 2),
        n not in (3, n + 1),
        x in (n, 9),
        all((n > 1, flag)),
        any((n > 9, flag)),
        round(x),
        round(n * 0.5),
        round(n),
    )


@proves("Python subset")
@both
def test_functions(backend):
    def calls(n, x, flag):
        def twice(v, of=n):
            return v + of

        def nested(v):
            inner = lambda w, k=2: twice(w) * k
            return inner(v) + inner(w=v, k=3)

        total = 0
        for factor in TABLE:
            total = total * 10 + factor
        a, b = TABLE[0], TABLE[-1]
        return (nested(n), twice(1, of=x), total + len(TABLE), a, b, SCALE)

    agrees(calls, backend)


@proves("Python subset")
@both
def test_marked_helpers(backend):
    @xetile.kernel(grid=1)
    def kernel(OUT, n):
        a = squared(n) + moved(n, times=2) + moved(x=n, by=1) + NUMPY_CONSTANT
        for factor in FACTORS:
            a = a * factor
        value = xetile.full((1,), a, xetile.f64)
        xetile.store_tile(value, xetile.init_tile(OUT, [0], (1,)))

    out = np.zeros(1)
    kernel(out, 4, backend=backend)
    assert out[0] == (16 + 10 + 5 + 0.5) * 1.5 * 2.5


@proves("Python subset")
@both
def test_tuples_of_tiles_are_carried(backend):
    @xetile.kernel(grid=1)
    def kernel(X, OUT, n):
        tiles = (
            xetile.init_tile(X, [0, 0], (2, 4)),
            (xetile.init_tile(X, [0, 4], (2, 4)), 1),
        )
        total, (low, count) = xetile.zeros((2, 4)), (xetile.full((2, 4), 99, f32), 0)
        for _ in range(n):
            a, (b, step) = tiles
            v = xetile.load_tile(a) * xetile.load_tile(b)
            total, (low, count) = total + v, (xetile.minimum(low, v), count + step)
            tiles = (
                xetile.update_tile_offset(a, [2, 0]),
                (xetile.update_tile_offset(b, [2, 0]), step + 1),
            )
        out = xetile.init_tile(OUT, [0, 0], (2, 4))
        xetile.store_tile(total + low + count, out)

    X, out = matrix("f32", (8, 8)), np.zeros((2, 4), np.float32)
    kernel(X, out, 4, backend=backend)
    products = (X[:, :4] * X[:, 4:]).reshape(4, 2, 4)
    np.testing.assert_array_equal(out, products.sum(0) + products.min(0) + 10)


@proves("compile time")
@both
def test_compile_time(backend, capsys):
    @xetile.kernel(grid=1)
    def kernel(OUT, n, MODE: constexpr = "sum", LAST: constexpr = 4, NONE=None):
        xetile.static_assert(MODE in ("sum", "prod"), "no such mode")
        xetile.static_print("mode", MODE, OUT.dtype, f"{LAST:02d}")
        total = 0
        for i in xetile.static_range(1, 10, 2):
            if i > LAST:
                break
            total = total + i if MODE == "sum" else total * i
        if NONE is None and MODE != "prod":
            total = total + cdiv(n, 4) + xetile.next_power_of_2(LAST + 1) + cdiv(7, 2)
        elif MODE == "prod":
            undefined_name  # noqa: B018, F821
        value = xetile.full((1,), total, i64)
        xetile.store_tile(value, xetile.init_tile(OUT, [0], (1,)))

    out = np.zeros(1, np.int64)
    kernel(out, 9, backend=backend)
    assert out[0] == 1 + 3 + 3 + 8 + 4
    assert capsys.readouterr().out == "mode sum i64 04\n"
    with pytest.raises(ControlFlowError, match="no such mode"):
        kernel(out, 9, MODE="max", backend=backend)


@proves("compile time")
@both
@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (2.5, 1)])
def test_cdiv_in_a_kernel_is_that_of_the_host(backend, a, b):
    @xetile.kernel(grid=1)
    def kernel(OUT, a, b):
        OUT[0] = cdiv(a, b) * 1.0
        OUT[1] = cdiv(a, 4) * 1.0
        OUT[2] = cdiv(17, b) * 1.0

    out = np.zeros(3)
    kernel(out, a, b, backend=backend)
    assert out.tolist() == [cdiv(a, b), cdiv(a, 4), cdiv(17, b)]


@proves("debug")
@both
def test_prints(backend, capfd):
    @xetile.kernel(grid=2)
    def kernel(X, n):
        i = xetile.program_id(0)
        v = xetile.load_tile(xetile.init_tile(X, [0], (3,)))
        xetile.device_print(f"{i}: {{n}} = {n:03d}, {n / 2:.2f} {n > 3} {v}")
        xetile.device_print("done {}", i)

    kernel(np.array([1, 2, 255], np.uint8), 5, backend=backend)
    lines = sorted(capfd.readouterr().out.splitlines())
    assert lines == [
        *(f"{i}: {{n}} = 005, 2.50 True [  1   2 255]" for i in (0, 1)),
        *("done 0", "done 1"),
    ]


@proves("debug")
@both
def test_prints_of_what_is_known_when_compiling(backend, capfd):
    @xetile.kernel(grid=1)
    def kernel(X, n, nothing=None):
        print(X.dtype, nothing, True, 1.5, "{}", (1, "a"), n, xetile.exp)

    kernel(np.zeros(3, np.uint8), 5, backend=backend)
    assert capfd.readouterr().out.startswith("u8 None True 1.5 {} (1, 'a') 5 ")


@proves("debug")
@both
def test_assertions(backend):
    @xetile.kernel(grid=1)
    def kernel(X, n):
        v = xetile.load_tile(xetile.init_tile(X, [0], (3,)))
        xetile.device_assert(v > 0, f"{n} of {v}")
        assert n != 5, "n is five"

    X = np.array([1, 2, 3], np.float32)
    kernel(X, 4, backend=backend)
    with pytest.raises(LaunchError, match="n is five"):
        kernel(X, 5, backend=backend)
    with pytest.raises(LaunchError, match=r"4 of \[1\. 0\. 3\.\]"):
        kernel(np.array([1, 0, 3], np.float32), 4, backend=backend)


# Where kernels are written ----------------------------------------------------------


def generated(text, name):
    """What a notebook does: code that only linecache knows."""
    text = textwrap.dedent(text)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {"xetile": xetile, "f32": f32}
    exec(compile(text, name, "exec"), namespace)
    return namespace


ADD_ONE = """
    @xetile.kernel(grid=1)
    def kernel(X):
        t = xetile.init_tile(X, [0], (4,))
        xetile.store_tile(xetile.load_tile(t) + {}, t)
"""


@proves("Python subset")
@both
def test_a_kernel_of_a_notebook_cell(backend):
    X = np.zeros(4, np.float32)
    for cell, step in enumerate((1, 10)):
        kernel = generated(ADD_ONE.format(step), f"<ipython-input-{cell}>")["kernel"]
        kernel(X, backend=backend)
    assert (X == 11).all()


@proves("Python subset")
def test_a_cell_that_is_run_again():
    X = np.zeros(4, np.float32)
    for step in (1, 10):  # the same name, as `%run` or an edited cell have it
        kernel = generated(ADD_ONE.format(step), "<edited cell>")["kernel"]
        kernel(X, backend="reference")
    assert (X == 11).all()


class Model:
    class Inner:
        if True:
            # fmt: off
            @staticmethod
            def kernel(X,
     BM: constexpr = 4):
                t = xetile.init_tile(
X, [0],
                                   (BM,))
                xetile.store_tile(xetile.load_tile(t)
         + 1, t)
            # fmt: on


@proves("Python subset")
@both
def test_a_method_with_odd_indentation(backend):
    X = np.zeros(4, np.float32)
    xetile.kernel(Model.Inner.kernel)[1](X, backend=backend)
    assert (X == 1).all()


@proves("Python subset")
@both
def test_parameters_with_greek_names(backend):
    """Names of the IR are ASCII, and begin with a letter."""

    @xetile.kernel
    def scaled(X, α, _β2, π2, _, λ_max=1.0, μ: constexpr = 4):
        t = xetile.init_tile(X, [0], (μ,))
        σ = xetile.load_tile(t) * α + _β2 * π2 - _
        xetile.store_tile(xetile.minimum(σ, λ_max), t)

    X = np.arange(4, dtype=np.float32)
    scaled[1](X, 2.0, 3, 4.0, 1, λ_max=14.5, backend=backend)
    assert X.tolist() == [11, 13, 14.5, 14.5]


@proves("Python subset")
def test_columns_behind_umlauts():
    def größe(X):
        länge = 4
        v = xetile.zeros((länge, undefiniert))  # noqa: F821, F841

    params = (ArrayParam("X", f32_dtype, 2, 1),)
    with pytest.raises(CompileError) as caught:
        build_module(größe, Signature(params))
    error = caught.value
    text = error.source_line[error.column - 1 :][: error.length]
    assert text == "undefiniert"
    line = str(error).splitlines()[3]
    assert line.index("undefiniert") == str(error).splitlines()[4].index("^")
