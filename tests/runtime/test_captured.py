"""Globals that mean something else after the first launch: never stale code.

docs/language.md, section 3: kernels are keyed by their source with called functions and
captured globals.
"""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import LaunchError
from xetl.frontend import build_module
from xetl.language.dtypes import f16, f32
from xetl.language.operation import constexpr
from xetl.language.reads import Reads
from xetl.language.signature import ArrayParam, Signature
from xetl.runtime.executables import unchanged_check
from xetl.runtime.kernel import Kernel, kernel

FACTOR = 2.0
DTYPE = f32
settings = types.ModuleType("settings")
settings.SHIFT = 1.0  # type: ignore[attr-defined]


class Sizes:
    ROWS = 16


def plus(v):
    return v + settings.SHIFT


def minus(v):
    return v - settings.SHIFT


STEP = xetile.function(plus)


@xetile.kernel
def run(A, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (Sizes.ROWS, 16)))
    v = STEP(a * FACTOR).to(DTYPE)
    xetile.store_tile(v.to(f32), xetile.init_tile(C, [0, 0], (Sizes.ROWS, 16)))


@pytest.fixture(params=["cpu", "reference"])
def result(request: Any) -> Any:
    A = np.full((16, 16), 1 + 2**-12, np.float32)

    def launch() -> list[float]:
        C = np.zeros_like(A)
        run[1](A, C, backend=request.param)
        return [C[0, 0], C[-1, -1]]

    return launch


def test_rebinding_counts_at_the_next_launch(
    result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = 1 + 2**-12
    for _ in range(2):
        assert result() == [2 * one + 1] * 2
    here = globals()
    with monkeypatch.context() as patch:
        patch.setitem(here, "FACTOR", 3.0)
        assert result() == [3 * one + 1] * 2
        patch.setitem(here, "STEP", xetile.function(minus))
        assert result() == [3 * one - 1] * 2
        patch.setattr(settings, "SHIFT", 5.0)
        assert result() == [3 * one - 5] * 2
        patch.setattr(Sizes, "ROWS", 8)
        assert result() == [3 * one - 5, 0]
    assert result() == [2 * one + 1] * 2
    monkeypatch.setitem(here, "DTYPE", f16)
    assert result() == [np.float16(2 * one + 1)] * 2


def make(factor: float) -> tuple[Kernel, Any]:
    @kernel
    def k(A, B: constexpr = None):
        return A * factor

    def change(value: float) -> None:
        nonlocal factor
        factor = value

    return k, change


def test_closure_variables(fake: Any) -> None:
    fake.with_fast = True
    k, change = make(2.0)
    array = np.zeros(3)
    for _ in range(3):
        k[1](array)
    assert (len(fake.compiled), len(fake.fast_launches)) == (1, 2)
    change(3.0)
    for _ in range(3):
        k[1](array)
    assert (len(fake.compiled), len(fake.fast_launches)) == (2, 4)


def test_going_back_compiles_nothing(fake: Any) -> None:
    fake.with_fast = True
    k, change = make(2.0)
    for value in (2.0, 3.0, 2.0, 3.0, 2.0):
        change(value)
        k[1](np.zeros(3))
        k[1](np.zeros(3), B=1)
    assert len(fake.compiled) == 4


def test_globals_of_compile_time_functions(fake: Any) -> None:
    scope: dict[str, Any] = {"N": 1}
    exec("def epilogue(v): return v + N", scope)
    fake.with_fast = True
    k, _ = make(2.0)
    array = np.zeros(3)
    for n in (1, 1, 1.0, True, 2):
        scope["N"] = n
        k[1](array, scope["epilogue"])
        k[1](array, B=scope["epilogue"])
    assert len(fake.compiled) == 4  # 1, 1.0, True and 2 all differ


def test_what_is_gone_has_changed(fake: Any) -> None:
    scope: dict[str, Any] = {"N": 1}
    exec("def k(A): return N", scope)
    k = kernel(scope["k"])
    k[1](np.zeros(3))
    del scope["N"]
    k[1](np.zeros(3))
    assert len(fake.compiled) == 2


def test_a_value_that_changes_while_compiling_is_looked_at_again(
    fake: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    fake.cacheable = True
    k, change = make(2.0)
    compile_kernel = fake.compile_kernel

    def compile_and_change(*args: Any) -> Any:
        made = compile_kernel(*args)
        if len(fake.compiled) == 1:
            change(3.0)
        return made

    monkeypatch.setattr(fake, "compile_kernel", compile_and_change)
    k[1](np.zeros(3))
    assert len(fake.compiled) == 2
    change(2.0)
    k[1](np.zeros(3))
    assert len(fake.compiled) == 3  # what was half made for 2.0 was not kept


def test_a_value_that_never_rests_is_refused(
    fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    k, change = make(0)
    compile_kernel = fake.compile_kernel

    def compile_and_change(*args: Any) -> Any:
        made = compile_kernel(*args)
        change(len(fake.compiled))
        return made

    monkeypatch.setattr(fake, "compile_kernel", compile_and_change)
    with pytest.raises(LaunchError, match="`k` reads changes again") as caught:
        k[1](np.zeros(3))
    assert caught.value.code == "X0834"


def test_equal_objects_that_differ_in_what_is_read() -> None:
    class Sizes:
        def __init__(self, rows: int) -> None:
            self.rows = rows

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    @xetile.kernel
    def k(A, sizes: constexpr):
        xetile.store_tile(
            xetile.full((16,), sizes.rows, f32), xetile.init_tile(A, [0], (16,))
        )

    A = np.zeros(16, np.float32)
    for rows in (1, 2, 1):
        k[1](A, sizes=Sizes(rows), backend="reference")
        assert A[0] == rows


def test_a_plan_keeps_what_it_was_bound_with(fake: Any) -> None:
    k, change = make(2.0)
    plan = k.bind(np.zeros(3), grid=1)
    change(3.0)
    plan()
    assert len(fake.compiled) == 1


def test_kernels_that_capture_nothing_are_not_asked() -> None:
    assert unchanged_check([]) is None


def test_kernels_that_use_the_language_alone_are_not_asked() -> None:
    @xetile.kernel
    def k(A):
        for i in range(min(2, 3)):
            a = xetile.load_tile(xetile.init_tile(A, [16 * i], (16,)))
            rounded = xetile.exp(a) * math.pi + np.pi
            xetile.store_tile(rounded.to(f32), xetile.init_tile(A, [0], (16,)))

    reads = Reads(k.fn, {})
    build_module(k.fn, Signature((ArrayParam("A", f32, 1, 0),)), reads=reads)
    assert [each.key for each in reads.captured] == ["f32"]


COUNTED = types.SimpleNamespace(a=1, b=2)


def test_the_check_of_four_names_looks_four_times() -> None:
    reads = Reads(run.fn, {})
    for name in ("FACTOR", "STEP", "DTYPE", "COUNTED", "FACTOR"):
        reads.name(run.fn, name)
    reads.attribute(COUNTED, "a")
    assert len(reads.captured) == 5
    unchanged = unchanged_check(reads.captured)
    assert unchanged is not None
    assert unchanged.__code__.co_names == ("a", "Exception")
    assert unchanged()
