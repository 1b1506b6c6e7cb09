"""Programs as long and as deep as one likes compile, in time linear in their length."""

import linecache
import sys
import textwrap

import numpy as np
import pytest

import xetl
from xetl import xetile
from xetl.errors import IRError, LaunchError, SyntaxNotSupportedError
from xetl.pipeline import refuse_deep_nesting

LOAD = "v = xetile.load_tile(xetile.init_tile(X, [0], (16,)))\n"
STORE = "xetile.store_tile(v, xetile.init_tile(Y, [0], (16,)))\n"


def lines(n):
    return LOAD + "v = v + 1\n" * n + STORE


def squares(n):
    """Each line reads its operand more than once."""
    return LOAD + "v = (v + v) * 0.5\n" * (n // 3) + STORE


def of_a_product(n):
    """The same, of a product."""
    product = "v = v[None, :] @ (v[:, None] * v[None, :])\n"
    store = "xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (1, 16)))\n"
    return LOAD + product + "v = (v + v) * 0.5\n" * (n // 3) + store


def terms(n):
    return LOAD + "v = v" + " + 1" * n + "\n" + STORE


def signs(n):
    return LOAD + "v = " + "-" * (2 * n) + "v\n" + STORE


def attributes(n):
    return LOAD + "v = v" + ".T.T" * n + "\n" + STORE


def negations(n):
    condition = "not " * (2 * n) + "(X.shape[0] > 0)"
    return LOAD + f"if {condition}:\n    v = v + 1\n" + STORE


def parentheses(n):
    """Python itself takes no more than 200."""
    n = min(n, 150)
    return LOAD + "v = " + "(" * n + "v" + " + 1)" * n + "\n" + STORE


def calls(n):
    n = min(n, 90)
    return LOAD + "v = " + "xetile.exp(xetile.log(" * n + "v" + "))" * n + "\n" + STORE


def numbers(n):
    return LOAD + "s = X.shape[0]\n" + "s = s * 3 + 1\n" * n + "v = v + s\n" + STORE


def offsets(n):
    """The same, of a tile's offset."""
    sums = "s = xetile.program_id(0)\n" + "s = s + s\n" * (n // 3)
    return sums + LOAD.replace("[0]", "[s]") + STORE


def moves(n):
    move = "t = xetile.update_tile_offset(t, [0])\n"
    tile = "t = xetile.init_tile(Y, [0], (16,))\n"
    return LOAD + tile + move * n + "xetile.store_tile(v, t)\n"


def indices(n):
    index = "i = xetile.arange(16)\n" + "i = i * 1 + 0\n" * n
    return LOAD + index + "v = xetile.load_gather(xetile.init_tile(X, i))\n" + STORE


def stores(n):
    """Only the first is inside of the arrays."""
    tiles = [f"xetile.init_tile({{}}, [{16 * i}], (16,))" for i in range(1 + n // 7)]
    sums = [f"xetile.load_tile({each.format('X')})" + " + 1" * 20 for each in tiles]
    pairs = zip(sums, tiles)
    return "".join(f"xetile.store_tile({x}, {t.format('Y')})\n" for x, t in pairs)


PROGRAMS = [lines, squares, terms, signs, attributes, negations, parentheses, calls]
PROGRAMS += [of_a_product, numbers, offsets, moves, indices]
LINEAR = [lines, squares, of_a_product, terms, numbers, offsets, moves, indices]
LINEAR += [stores]


def kernel_of(body):
    source = "@xetile.kernel\ndef k(X, Y):\n" + textwrap.indent(body, "    ")
    name = f"<made {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"xetile": xetile}
    exec(compile(source, name, "exec"), space)
    return space["k"]


def launch(body, backend):
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)
    kernel_of(body)[1](x, y, backend=backend)
    return y


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_thousand_deep(program, backend):
    found = launch(program(700), backend)
    wanted = launch(program(3), "reference")
    if program in (lines, terms, parentheses):
        wanted = np.full(16, 1 + (150 if program is parentheses else 700))
    if program is numbers:
        exact = 16
        for _ in range(700):
            exact = (exact * 3 + 1 + 2**63) % 2**64 - 2**63
        wanted = np.full(16, 1 + exact, np.float32)
    assert np.allclose(found, wanted, rtol=1e-4)


def calls_while(run):
    """How many functions of Python ``run`` calls."""
    count = 0

    def tally(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(tally)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("program", LINEAR)
def test_time_is_linear_in_length(program, backend):
    launch(program(1), backend)  # what is imported and made once

    def count(n):
        return calls_while(lambda: launch(program(n), backend))

    # What is short is one loop, without scratch, which needs less code.
    few, some, many = count(160), count(230), count(300)
    assert many - some < 1.2 * (some - few)


def test_what_nests_too_deeply_is_an_error_of_its_own():
    body = "".join(f"if X.shape[0] > {n}:\n    return\n" for n in range(400))
    with pytest.raises(SyntaxNotSupportedError) as caught:
        launch(LOAD + body + STORE, "reference")
    assert caught.value.code == "X0408"
    assert caught.value.line > 3


TEXT = """gpu.module @m {{ gpu.func @k(%A: memref<8xf32>) kernel {{
  {}
  gpu.return
}} }}"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%c = arith.constant dense<0> : vector<10000000000xi8>", "too many"),
        ("%c = vector.step : vector<100000x1000000xindex>", "too many"),
        ("%c = arith.constant 0 : i16777215", "at most 64 bits"),
        ("%c = arith.constant dense<1> : vector<4xi4096>", "at most 64 bits"),
    ],
)
def test_texts_have_limits(line, message):
    with pytest.raises(IRError, match=message) as caught:
        xetl.load_mlir(TEXT.format(line))
    assert caught.value.line == 2


def test_deep_regions_of_texts():
    line = "%c = arith.constant true " + "scf.if %c { " * 2000 + "} " * 2000
    with pytest.raises(IRError):
        xetl.load_mlir(TEXT.format(line))


def test_settings_raise_limits(monkeypatch):
    body = "for i in xetile.static_range(5000):\n    pass\n"
    monkeypatch.setenv("XETL_MAX_UNROLLED", "6000")
    launch(body, "reference")
    monkeypatch.setenv("XETL_MAX_UNROLLED", "many")
    with pytest.raises(LaunchError, match="XETL_MAX_UNROLLED"):
        launch(body + "pass\n", "reference")


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["t = xetile.update_tile_offset(t, [0, i])", "i = i + j", "i = (i + 4) % 128"],
)
def test_long_chains_of_moves(line: str) -> None:
    """2,500 moves, or offsets computed in as many steps, which xegpu follows back."""
    lines = f"    {line}\n" * 2500
    text = (
        f"def k(X, i, j):\n    t = xetile.init_tile(X, [0, 0], (16, 16))\n{lines}"
        "    t = xetile.update_tile_offset(t, [0, i])\n"
        "    xetile.store_tile(xetile.load_tile(t) + 1, t)\n"
    )
    linecache.cache["<deep>"] = (len(text), None, text.splitlines(True), "<deep>")
    names = {"xetile": xetile}
    exec(compile(text, "<deep>", "exec"), names)
    xetile.kernel(names["k"]).warmup("f32[M,N] i64 i64", target="pvc")


def test_depth_that_a_pass_cannot_follow_is_an_error() -> None:
    deep = refuse_deep_nesting("k", "f.py")
    with pytest.raises(SyntaxNotSupportedError) as caught, deep:
        raise RecursionError
    assert caught.value.code == "X0408"
