"""Prints and assertions of the run, and f-strings."""

from building import build, names, ops

from xetl import xetile
from xetl.xetile import constexpr


def shown(op):
    return op.template.data, [str(a.type) for a in op.arguments]


def test_prints():
    def kernel(X, B, n, N: constexpr = 4):
        v = xetile.load_tile(xetile.init_tile(B, [0], (N,)))
        xetile.device_print("begin")
        xetile.device_print("n = {}, {:.2f}, {}", n, n / 2, n > 3)
        xetile.device_print(f"{{v}} = {v} of {N:03d}, {v[:, None]} {n:>4}")

    module = build(kernel, X="f32 2", B="u8 1", n="i64")
    assert [shown(op) for op in ops(module, "xetile.print")] == [
        ("begin", []),
        ("n = {}, {:.2f}, {}", ["index", "f64", "i1"]),
        (
            "{{v}} = {} of 004, {} {:>4}",
            ["vector<4xi8>", "vector<4x1xi8>", "index"],
        ),
    ]
    unsigned = ops(module, "xetile.print")[2].unsigned
    assert list(unsigned.get_values()) == [0, 1]


def test_assertions():
    def kernel(X, n):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)))
        assert n > 3, "n {is} small"
        assert n != 5
        xetile.device_assert(v > 0, f"v is {v}")
        assert X.ndim == 2, "never compiled"

    module = build(kernel, X="f32 2", n="i64")
    assert [shown(op) for op in ops(module, "xetile.assert")] == [
        ("n {{is}} small", []),
        ("n != 5", []),
        ("v is {}", ["vector<4x4xf32>"]),
    ]
    assert ops(module, "xetile.assert")[2].condition.owner.name == "vector.extract"


def test_they_stay_where_they_are():
    def kernel(X, n):
        for i in range(n):
            if i > 3:
                xetile.device_print("{}", i)

    assert "xetile.print" in names(build(kernel, X="f32 2", n="i64"))


def test_tuples_are_printed_as_python_prints_them(capsys):
    def kernel(X, n):
        print(X.shape, f"{(n,)} {(n, 'a')} {(1, (X.dtype, n))}", (1, 2))
        xetile.static_print(X.shape, f"{(n, 1)}")

    module = build(kernel, X="f32 2", n="i64")
    template, _ = shown(ops(module, "xetile.print")[0])
    assert template == "({}, {}) ({},) ({}, 'a') (1, (f32, {})) (1, 2)"
    assert capsys.readouterr().out == "(an int, an int) (an int, 1)\n"


def test_f_strings_of_values_are_described_when_compiling(capsys):
    def kernel(X, n):
        v = xetile.zeros((4, 4))
        xetile.static_print(f"{X.ndim}: {v} {n}")
        xetile.static_assert(True, f"{v}")

    build(kernel, X="f32 2", n="i64")
    assert capsys.readouterr().out == "2: f32 (4, 4) an int\n"
