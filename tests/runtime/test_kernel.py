"""Right calls: what reaches the backend, and how often it compiles."""

from __future__ import annotations

import threading
import traceback
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.errors import CompileError, LaunchError
from xetl.language import dtypes
from xetl.language.operation import constexpr
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam
from xetl.runtime.kernel import Kernel, kernel

torch: Any = pytest.importorskip("torch")


def make(**options: Any) -> Kernel:
    def k(A, B=None, n=1, EPILOGUE: constexpr = None, BM: constexpr = 32):
        """Says what it does."""

    return kernel(**options)(k) if options else kernel(k)


def x(dtype: str = "f4") -> np.ndarray:
    return np.zeros((4, 6), dtype)


def test_a_kernel_looks_like_its_function() -> None:
    k = make()
    assert k.__name__ == "k"
    assert k.__doc__ == "Says what it does."
    assert k.__wrapped__ is k.fn
    assert repr(k) == "<xetile.kernel k>"


def test_signature(fake: Any) -> None:
    def epilogue(v): ...

    a, b = x(), x("i8").T
    make()[3](a, b, 2.5, EPILOGUE=epilogue)
    (grid, args, signature) = fake.launches[0]
    assert grid == (3, 1, 1)
    assert [args[0].obj is a, args[1].obj is b, args[2]] == [True, True, 2.5]
    assert signature.params == (
        ArrayParam("A", dtypes.f32, 2, 1),
        ArrayParam("B", dtypes.i64, 2, 0),
        ScalarParam("n", "f64"),
        ConstParam("EPILOGUE", epilogue),
        ConstParam("BM", 32),
    )


@pytest.mark.parametrize(
    ("value", "param"),
    [
        (None, ConstParam("B", None)),
        (True, ScalarParam("B", "i1")),
        (np.bool_(True), ScalarParam("B", "i1")),
        (7, ScalarParam("B", "i64")),
        (np.int8(7), ScalarParam("B", "i64")),
        (0.5, ScalarParam("B", "f64")),
        (np.float32(0.5), ScalarParam("B", "f64")),
        (ml_dtypes.bfloat16(0.5), ScalarParam("B", "f64")),
        (dtypes.f16, ConstParam("B", dtypes.f16)),
        (np.float32, ConstParam("B", dtypes.f32)),
        (np.dtype("i2"), ConstParam("B", dtypes.i16)),
        (torch.bfloat16, ConstParam("B", dtypes.bf16)),
        (xetile.exp, ConstParam("B", xetile.exp)),
        (
            xetile.wg_map([2, 2], [8, 8]),
            ConstParam("B", xetile.wg_map([2, 2], [8, 8])),
        ),
        (torch.zeros(3), ArrayParam("B", dtypes.f32, 1, 0)),
        (np.zeros(9)[::3], ArrayParam("B", dtypes.f64, 1, None)),
    ],
)
def test_kinds_of_arguments(fake: Any, value: object, param: object) -> None:
    make()[1](x(), value)
    assert fake.launches[0][2].params[1] == param


def test_the_same_view_is_an_alias(fake: Any) -> None:
    a = x()
    make()[1](a, a[:])
    first, second, *_ = fake.launches[0][2].params
    assert (first.alias, second.alias) == (0, 0)
    make()[1](a, a[1:])
    first, second, *_ = fake.launches[1][2].params
    assert (first.alias, second.alias) == (None, None)


@pytest.mark.parametrize(
    ("grid", "sizes"),
    [
        (5, (5, 1, 1)),
        ((5,), (5, 1, 1)),
        ([5, 2], (5, 2, 1)),
        ((5, 2, 3), (5, 2, 3)),
        (np.int64(4), (4, 1, 1)),
        ((np.int32(4), 2), (4, 2, 1)),
        (lambda m: m.A.shape, (4, 6, 1)),
        (lambda m: (m.BM, m.n), (32, 1, 1)),
        (lambda m: xetile.cdiv(m.A.shape[0], 3), (2, 1, 1)),
    ],
)
def test_grids(fake: Any, grid: Any, sizes: tuple[int, int, int]) -> None:
    make()[grid](x())
    make(grid=grid)(x())
    make().bind(x(), grid=grid)()
    assert [launch[0] for launch in fake.launches] == [sizes] * 3


def test_the_grid_of_a_call_wins_over_the_declared_one(fake: Any) -> None:
    make(grid=2)[7](x())
    assert fake.launches[0][0] == (7, 1, 1)


def test_compiles_once_for_each_specialisation(fake: Any) -> None:
    k = make()
    for array in (x(), x(), np.zeros((9, 9), "f4")):
        k[1](array)
        k[2](array, n=3)
    assert len(fake.compiled) == 1
    k[1](x().T)
    k[1](x()[:, ::2])
    k[1](x("f8"))
    k[1](np.zeros(3, "f4"))
    k[1](x(), BM=64)
    k[1](x(), n=1.0)
    assert len(fake.compiled) == 7


def test_equal_constants_of_different_types_differ(fake: Any) -> None:
    k = make()
    for value in (1, 1.0, True, 0.0, -0.0, (1, 2), (1.0, 2), float("nan")):
        k[1](x(), BM=value)
    assert len(fake.compiled) == 8
    for value in (1, 1.0, True, 0.0, -0.0, [1, 2], (1.0, 2), float("nan")):
        k[1](x(), BM=value)
    assert len(fake.compiled) == 8


def test_a_lambda_made_anew_compiles_once(fake: Any) -> None:
    k = make()
    for _ in range(3):
        k[1](x(), EPILOGUE=lambda v: v * 2)
    assert len(fake.compiled) == 1
    for factor in (2, 3, 2):
        k[1](x(), EPILOGUE=lambda v: v * factor)  # noqa: B023 - called at once
    assert len(fake.compiled) == 3


def test_string_annotations() -> None:
    scope: dict[str, Any] = {"xetile": xetile, "cx": constexpr}
    text = "def k(A: 'Array', B: 'constexpr', C: 'xetile.constexpr[int]', D: 'cx',"
    text += " E: 'None | nothing', F: int = 3): pass"
    exec(text, scope)
    each = kernel(scope["k"])._parameters.each
    assert [p.is_constexpr for p in each] == [False, True, True, True, False, False]


def test_keyword_only_parameters(fake: Any) -> None:
    @kernel
    def k(A, *, B, n=2):
        pass

    k[1](x(), B=5)
    assert fake.launches[0][1][1:] == [5, 2]


def test_choice_of_backend(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    k = make()
    k[1](x(), backend="reference")
    assert (len(fake.launches), len(fake.reference.launches)) == (0, 1)
    monkeypatch.setenv("XETL_BACKEND", "reference")
    k[1](x())
    k[1](x(), backend="cpu")
    assert (len(fake.launches), len(fake.reference.launches)) == (1, 2)
    monkeypatch.delenv("XETL_BACKEND")
    monkeypatch.setenv("XETL_INTERPRET", "1")
    k[1](x())
    assert (len(fake.launches), len(fake.reference.launches)) == (1, 3)


def test_forced_target(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    k = make()
    k[1](x())
    monkeypatch.setenv("XETL_TARGET", "avx2")
    k[1](x())
    assert [target for _, _, target in fake.compiled] == ["host", "avx2"]


def test_options_of_a_launch(fake: Any) -> None:
    make()[1](x(), wait=False, queue=None, backend=None)
    make(grid=1)(x(), wait=True)
    assert len(fake.launches) == 2


def test_ir(fake: Any) -> None:
    assert make().ir("llvm", x()) == "k at llvm for host"
    assert make().ir("llvm", x(), target="avx2", BM=64) == "k at llvm for avx2"
    assert not fake.launches


def test_subgroups_are_visible_on_the_function() -> None:
    k = make(subgroups=[2, 4])
    assert k.subgroups == (2, 4)
    assert k.fn.__xetl_subgroups__ == (2, 4)


def test_threads_compile_once(fake: Any) -> None:
    k = make()
    threads = [threading.Thread(target=k[1], args=(x(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(fake.compiled), len(fake.launches)) == (1, 8)


# The short road.


def test_the_native_entry_is_tried_first(fake: Any) -> None:
    fake.with_fast = True
    k = make()
    a, b = x(), x()
    for _ in range(3):
        k[2, 3](a, b, 7)
    assert (len(fake.launches), len(fake.fast_launches)) == (1, 2)
    assert fake.fast_launches[0] == ((2, 3, 1), (a, b, 7))


def test_defaults_and_keywords_reach_the_native_entry(fake: Any) -> None:
    fake.with_fast = True
    k = make()
    a, b = x(), x()
    for n in (4, 5):
        k[1](a)
        k[1](a, n=n, B=b)
        k[1](a, BM=32, n=n)
    assert len(fake.launches) == 3
    (_, first), (_, second), (_, third) = fake.fast_launches
    assert (first[1:], third[1:]) == ((None, 1), (None, 5, None, 32))
    assert second[1] is b
    assert second[2:] == (5, None, 32)


def test_other_calls_do_not_take_it(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.with_fast = True
    k = make()
    a = x()
    calls: list[Any] = [
        lambda: k[1](a),
        lambda: k[1](a, None),
        lambda: k[1](a, BM=32),
        lambda: k[1](a, BM=64),
        lambda: k[1](a, BM=64.0),
        lambda: k[1](a, backend="cpu"),
    ]
    for call in calls:
        call()
    assert (len(fake.launches), len(fake.fast_launches)) == (6, 0)
    for call in calls:
        call()
    assert (len(fake.launches), len(fake.fast_launches)) == (6, 6)
    monkeypatch.setenv("XETL_TARGET", "avx2")
    for call in calls:
        call()
    assert (len(fake.launches), len(fake.fast_launches)) == (12, 6)


def test_a_refusing_entry_sends_the_call_the_long_way(fake: Any) -> None:
    fake.with_fast = True
    fake.accepts = lambda objects: objects[0].dtype == np.float32
    k = make()
    for dtype in ("f4", "f8", "f4", "f8"):
        k[1](x(dtype))
    assert (len(fake.launches), len(fake.fast_launches)) == (3, 1)


def test_lists_as_keywords_are_looked_at_each_time(fake: Any) -> None:
    fake.with_fast = True
    k = make()
    sizes = [1, 2]
    k[1](x(), BM=sizes)
    sizes.append(3)
    k[1](x(), BM=sizes)
    assert [s.params[-1].value for _, _, s in fake.launches] == [(1, 2), (1, 2, 3)]


def test_grid_functions_see_the_new_arguments(fake: Any) -> None:
    fake.with_fast = True
    k = make(grid=lambda m: m.A.shape[0])
    for rows in (3, 4, 5):
        k(np.zeros((rows, 2)))
    assert [each[0][0] for each in fake.launches + fake.fast_launches] == [3, 4, 5]


def test_plans(fake: Any) -> None:
    fake.with_fast = True
    plan = make().bind(x(), n=5, grid=(2, 2))
    assert not fake.launches
    plan()
    plan()
    assert plan.grid == (2, 2, 1)
    assert [each[0] for each in fake.fast_launches] == [(2, 2, 1)] * 2
    fake.accepts = lambda objects: False
    plan()
    assert len(fake.launches) == 1


def test_many_grids_do_not_pile_up(fake: Any) -> None:
    k = make()
    for size in range(1, 1000):
        k[size]
    assert len(k._launchers) <= 256
    assert k[5] is k[5]


def test_errors_of_kernels_end_at_the_line_of_the_kernel() -> None:
    @kernel
    def wrong(A):
        xetile.load_tile(nothing)  # noqa: F821

    with pytest.raises(CompileError, match="nothing") as caught:
        wrong[1](x())
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert "nothing" in (entries[-1].line or "")
    ours = [entry for entry in entries if "xetl/runtime" in entry.filename]
    assert len(ours) == 1


@pytest.mark.parametrize(
    ("args", "keywords", "seen"),
    [
        (("a",), {}, ("a", None, 1, 32)),
        (("a", "b", 7), {}, ("a", "b", 7, 32)),
        ((), {"A": "a", "n": 2}, ("a", None, 2, 32)),
        (("a",), {"BM": 5, "backend": "cpu", "wait": True}, ("a", None, 1, 5)),
    ],
)
def test_what_a_grid_function_sees(args: Any, keywords: Any, seen: Any) -> None:
    def grid(m: Any) -> int:
        found.append((m.A, m.B, m.n, m.BM))
        assert vars(m).keys() == {"__kernel__", "A", "B", "n", "EPILOGUE", "BM"}
        return 1

    found: list[Any] = []
    k = make()
    for _ in range(2):
        assert k.grid_of(grid, args, keywords) == (1, 1, 1)
    assert found == [seen] * 2


@pytest.mark.parametrize(
    ("args", "keywords", "message"),
    [
        ((), {}, "without `A`"),
        ((), {"n": 1}, "without `A`"),
        ((1,), {"A": 1}, "by position and by keyword"),
        ((1,), {"x": 1}, "no parameter `x`"),
        ((1, 2, 3, 4, 5, 6), {}, "takes 5 positional arguments"),
    ],
)
def test_wrong_calls_are_noticed_before_the_grid_function_runs(
    args: Any, keywords: Any, message: str
) -> None:
    with pytest.raises(LaunchError, match=message):
        make().grid_of(lambda m: 1 / 0, args, keywords)
