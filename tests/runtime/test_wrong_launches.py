"""Wrong calls, and what the user is told: before anything runs."""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from xetl.errors import LaunchError, SyntaxNotSupportedError
from xetl.language.operation import constexpr
from xetl.runtime.kernel import kernel
from xetl.runtime.parameters import RESERVED
from xetl.settings import config, no_compile

torch: Any = pytest.importorskip("torch")


@kernel
def add(A, B, C, alpha=1.0, BM: constexpr = 32):
    pass


@kernel(grid=lambda m: (m.C.shape[0], m.BM))
def declared(A, C, BM: constexpr = 32):
    pass


@kernel(grid=lambda m: m.A.shape[0] // m.BLOCK)
def misspelt(A, BM: constexpr = 32):
    pass


def x() -> np.ndarray:
    return np.zeros((4, 4), np.float32)


def frozen() -> np.ndarray:
    array = x()
    array.flags.writeable = False
    return array


ONE = x()

WRONG: list[tuple[str, Callable[[], object], str, str]] = [
    # what, call, headline, help
    ("no grid", lambda: add(x(), x(), x()), "`add` was called without a grid",
     "add[grid](...)"),
    ("no grid to bind", lambda: add.bind(x(), x(), x()),
     "`add` was bound without a grid", "bind(..., grid=...)"),
    ("grid of zero", lambda: add[0](x(), x(), x()), "an empty grid was given: 0",
     "1 or more"),
    ("a zero in a grid", lambda: add[4, 0](x(), x(), x()),
     "an empty grid was given: (4, 0)", "1 or more"),
    ("negative grid", lambda: add[2, -1](x(), x(), x()),
     "a negative grid was given: (2, -1)", "1 or more"),
    ("four sizes", lambda: add[1, 2, 3, 4](x(), x(), x()),
     "a grid of 4 sizes was given", "a tuple of up to 3 ints"),
    ("no size", lambda: add[()](x(), x(), x()), "a grid of 0 sizes was given",
     "a tuple of up to 3 ints"),
    ("float grid", lambda: add[2.5](x(), x(), x()),
     "the grid 2.5 holds a float instead of an int", "a grid is an int"),
    ("text grid", lambda: add["12"](x(), x(), x()),
     "the grid '12' holds a str instead of an int", "a grid is an int"),
    ("None grid", lambda: add[None](x(), x(), x()),
     "the grid None holds a NoneType instead of an int", "a grid is an int"),
    ("huge grid", lambda: add[1 << 40](x(), x(), x()), "is too large", "let each do"),
    ("grid function returns a float", lambda: add[lambda m: 5 / 2](x(), x(), x()),
     "the grid 2.5 holds a float", "a grid is an int"),
    ("grid function returns nothing", lambda: add[lambda m: None](x(), x(), x()),
     "the grid None holds a NoneType", "a grid is an int"),
    ("wrong name on m", lambda: misspelt(x()),
     "the grid of `misspelt` asks for `BLOCK`, which is no parameter of it",
     "its parameters are `A`, `BM`"),
    ("near name on m", lambda: add[lambda m: m.alpa](x(), x(), x()),
     "asks for `alpa`", "did you mean `alpha`?"),
    ("near name in m[]", lambda: add[lambda m: m["alpa"]](x(), x(), x()),
     "asks for `alpa`", "did you mean `alpha`?"),
    ("missing argument", lambda: add[1](x(), x()), "`add` was called without `C`",
     "its parameters are `A`, `B`, `C`, `alpha`, `BM`"),
    ("missing arguments", lambda: add[1](), "called without `A`, `B`, `C`", "`BM`"),
    ("missing with declared grid", lambda: declared(x()),
     "`declared` was called without `C`", "`A`, `C`, `BM`"),
    ("unknown keyword", lambda: add[1](x(), x(), x(), ALPHA=2.0),
     "`add` has no parameter `ALPHA`", "its parameters are"),
    ("near keyword", lambda: add[1](x(), x(), x(), alhpa=2.0),
     "`add` has no parameter `alhpa`", "did you mean `alpha`?"),
    ("near option", lambda: add[1](x(), x(), x(), backnd="cpu"),
     "`add` has no parameter `backnd`", "did you mean `backend`?"),
    ("target in a launch", lambda: add[1](x(), x(), x(), target="avx2"),
     "`add` has no parameter `target`", ""),
    ("given twice", lambda: add[1](x(), x(), x(), A=x()),
     "`add` was given `A` by position and by keyword", ""),
    ("too many", lambda: add[1](x(), x(), x(), 1.0, 32, 5),
     "`add` takes 5 positional arguments, but 6 were given", "`BM`"),
    ("list", lambda: add[1]([1.0], x(), x()), "`A` is a list", "np.asarray(A)"),
    ("text", lambda: add[1](x(), x(), x(), "1.0"), "`alpha` is a str",
     "annotate it as constexpr"),
    ("complex number", lambda: add[1](x(), x(), x(), 1j), "`alpha` is a complex",
     "imaginary"),
    ("some object", lambda: add[1](x(), object(), x()), "`B` is an object",
     "arrays (NumPy, torch, DLPack)"),
    ("large int", lambda: add[1](x(), x(), x(), 1 << 64), "does not fit a 64-bit", ""),
    ("complex array", lambda: add[1](x().astype("c8"), x(), x()),
     "`A` has dtype complex64", "float16, bfloat16"),
    ("big-endian array", lambda: add[1](x(), x().astype(">f4"), x()),
     "`B` has dtype float32 in the byte order of another machine",
     "B.dtype.newbyteorder"),
    ("structured array", lambda: add[1](np.zeros(3, "i4,f4"), x(), x()),
     "`A` has a structured dtype", "float16"),
    ("odd strides", lambda: add[1](np.zeros(3, "i1,<f4")["f1"], x(), x()),
     "dimension 0 of `A` has a stride of 5 bytes", "pass a copy"),
    ("0-d array", lambda: add[1](np.zeros(()), x(), x()),
     "`A` is an array without dimensions", "A.item()"),
    ("array elsewhere", lambda: add[1](x(), x(), torch.zeros(4, device="meta")),
     "`C` is a tensor on device `meta`", "C.cpu()"),
    ("array as constexpr", lambda: add[1](x(), x(), x(), BM=x()),
     "`BM` is a compile-time parameter, but an ndarray cannot be one", "hashable"),
    ("tensor as constexpr", lambda: add[1](x(), x(), x(), BM=torch.ones(3)),
     "`BM` is a compile-time parameter, but a Tensor cannot be one", "hashable"),
    ("tensor in a constexpr", lambda: add[1](x(), x(), x(), BM=(1, torch.ones(3))),
     "`BM` is a compile-time parameter, but a Tensor cannot be one", "hashable"),
    ("dict as constexpr", lambda: add[1](x(), x(), x(), BM={}),
     "`BM` is a compile-time parameter, but a dict", "hashable"),
    ("read-only output", lambda: add[1](x(), x(), frozen()),
     "`C` is written by the kernel, but the array is read-only",
     "pass an array that may be written, such as a copy of it"),
    ("broadcast output", lambda: add[1](x(), x(), as_strided(x(), (4, 4), (0, 4))),
     "`C` is written, but some of its elements share memory", "pass a copy"),
    ("overlapping", lambda: add[1](ONE[1:], x(), ONE[:-1]),
     "`C` is written, but shares memory with `A`", "the very same view"),
    ("unknown backend", lambda: add[1](x(), x(), x(), backend="gpu"),
     "there is no backend called `gpu`", "`cpu`, `reference`, `xegpu`"),
    ("backend is no name", lambda: add[1](x(), x(), x(), backend=3),
     "`backend=` is an int", ""),
    ("queue on a host backend", lambda: add[1](x(), x(), x(), queue=object()),
     "backend `cpu` has no queues", ""),
    ("no stage", lambda: add.ir(), "without the name of a stage", 'add.ir("xetile"'),
    ("stage is no name", lambda: add.ir(x(), x(), x()), "without the name of a", ""),
    ("unknown target", lambda: add.ir("llvm", x(), x(), x(), target="avx3"),
     "backend `cpu` has no target `avx3`", "did you mean `avx2`?"),
    ("target of another", lambda: add.ir("llvm", "f32[N] f32[N] f32[N]", target="pvc",
     backend="cpu"),
     "backend `cpu` has no target `pvc`", "pass `backend='xegpu'`"),
    ("nearly a target of another", lambda: add.ir("llvm", x(), x(), x(), target="pcv",
     backend="cpu"),
     "has no target `pcv`",
     "did you mean `pvc`? It is of backend `xegpu`; those of `cpu` are `host`, `avx2`"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "headline", "advice"),
    [each[1:] for each in WRONG],
    ids=[each[0] for each in WRONG],
)
def test_wrong_launch(
    fake: Any, call: Callable[[], object], headline: str, advice: str
) -> None:
    fake.stored = [2]
    with pytest.raises(LaunchError) as caught:
        call()
    text = str(caught.value)
    assert headline in text
    assert advice in (caught.value.help or "")
    assert re.match(r"error\[X08\d\d\]: ", text)
    assert not fake.launches
    # It points into this file, and the traceback ends there.
    assert caught.value.file == __file__
    assert caught.value.source_line is not None
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_carets_are_under_the_call(fake: Any) -> None:
    with pytest.raises(LaunchError) as caught:
        ["äöü", add[0](x(), x(), x())]
    error = caught.value
    assert (error.column, error.length) == (17, len("add[0]"))
    assert error.source_line is not None
    assert error.source_line[16:].startswith("add[0]")


def wrong_declarations() -> list[Any]:
    def stars(A, **rest): ...
    def reserved(A, grid): ...
    def fine(A): ...
    @functools.wraps(fine)
    def wrapped(*args): ...

    return [
        (lambda: kernel(stars), "`**rest` cannot be a parameter of the kernel `stars`"),
        (lambda: kernel(reserved), "`grid` cannot be a parameter of the kernel"),
        (lambda: kernel(grid=0)(fine), "an empty grid was given"),
        (lambda: kernel(subgroups=[2])(fine), "`subgroups` of `fine` is [2]"),
        (lambda: kernel(subgroups=8)(fine), "`subgroups` of `fine` is 8"),
        (lambda: kernel(subgroups=[2, 0])(fine), "`subgroups` of `fine` is [2, 0]"),
        (lambda: kernel(3), "`kernel` was given 3, which is no function"),
        (lambda: kernel(print), "a kernel is made of a function"),
        (lambda: kernel(wrapped), "`fine` is wrapped by another decorator"),
    ]


@pytest.mark.parametrize(("declare", "headline"), wrong_declarations())
def test_wrong_declaration(declare: Callable[[], object], headline: str) -> None:
    with pytest.raises(LaunchError, match=re.escape(headline)):
        declare()


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def k(A, {name}=None): pass", scope)
    with pytest.raises(LaunchError, match=f"`{name}` cannot be a parameter"):
        kernel(scope["k"])


def test_exceptions_of_a_grid_function_pass_through(fake: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        add[lambda m: 1 // 0](x(), x(), x())
    with pytest.raises(AttributeError, match="'float' object has no attribute"):
        add[lambda m: m.alpha.shape](x(), x(), x())


def test_a_wrong_argument_explains_a_failing_grid_better(fake: Any) -> None:
    with pytest.raises(LaunchError, match="`A` is a list"):
        add[lambda m: m.A.shape[0]]([1, 2], x(), x())


def test_unknown_names_in_the_environment(
    fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XETL_TARGET", "avx3")
    with pytest.raises(LaunchError, match="has no target `avx3`"):
        add[1](x(), x(), x())
    monkeypatch.setenv("XETL_BACKEND", "tpu")
    with pytest.raises(LaunchError, match="no backend called `tpu`"):
        add[1](x(), x(), x())
    monkeypatch.setenv("XETL_INTERPRET", "perhaps")
    with pytest.raises(LaunchError, match="XETL_INTERPRET is 'perhaps'"):
        add[1](x(), x(), x())


def test_a_float_that_is_whole_is_a_size(fake: Any) -> None:
    """It was taken only after a launch with an equal int."""

    @kernel
    def fresh(A):
        pass

    whole: list[Any] = [7.0, (7, np.float32(2)), lambda _: 3.0]
    for grid in whole:
        fresh[grid](x())
    assert [grid for grid, *_ in fake.launches] == [(7, 1, 1), (7, 2, 1), (3, 1, 1)]
    for wrong in (float("nan"), float("inf"), (7, 1.5)):
        with pytest.raises(LaunchError, match="holds a float instead of an int"):
            fresh[wrong](x())


def test_no_compile(fake: Any) -> None:
    @kernel
    def fresh(A):
        pass

    with no_compile(), pytest.raises(LaunchError, match="would have to be compiled"):
        fresh[1](x())
    fresh[1](x())
    with no_compile():
        fresh[1](x())


def test_config_wins_over_the_environment(fake: Any) -> None:
    config.backend = "tpu"
    try:
        with pytest.raises(LaunchError, match="no backend called `tpu`"):
            add[1](x(), x(), x())
    finally:
        del config.backend
    add[1](x(), x(), x())


@kernel
async def asynchronous(X):
    pass


def test_async_functions_are_no_kernels():
    with pytest.raises(SyntaxNotSupportedError) as caught:
        asynchronous[1](np.ones(4, np.float32))
    drawing = str(caught.value)
    assert caught.value.code == "X0402"
    assert "async def asynchronous(X):" in drawing
    assert "^^^^^" in drawing
    assert "write `def`" in drawing


@pytest.mark.parametrize("name", ["backend", "**rest"])
def test_parameters_that_cannot_be_are_underlined(name):
    def reserved(X, backend):
        pass

    def starred(X, **rest):
        pass

    with pytest.raises(LaunchError) as caught:
        kernel(reserved if name == "backend" else starred)
    assert caught.value.code == "X0809"
    assert caught.value.source_line.strip().startswith("def ")
    name = name.lstrip("*")
    assert caught.value.column == caught.value.source_line.rindex(name) + 1
    assert caught.value.length == len(name)
