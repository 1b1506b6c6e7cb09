"""The native entry agrees with the general path: on what it takes, and on the slots."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_kernels import SCALE, SCRATCH, TEAM, image_of
from numpy.lib.stride_tricks import as_strided

from xetl import xetile
from xetl.errors import InternalError, LaunchError
from xetl.language import dtypes
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.runtime.overlap import check_stored
from xetl.runtime.parameters import Parameter, Parameters
from xetl.runtime.specialize import Specialization, specialize
from xetl_cpu.launch import entry, fastcall
from xetl_cpu.launch.executable import CpuExecutable
from xetl_cpu.launch.threads import thread_layer

WORDS = 64
SEEN = np.zeros(WORDS, np.int64)
"""Where the kernel `DUMP` writes its slots; its address is the last argument."""

DUMP = """
define i64 @xetl_kernel(ptr %slots) {
entry:
  %out.slot = getelementptr i64, ptr %slots, i64 8
  %out = load ptr, ptr %out.slot
  %n.slot = getelementptr i64, ptr %slots, i64 9
  %n = load i64, ptr %n.slot
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %from = getelementptr i64, ptr %slots, i64 %i
  %to = getelementptr i64, ptr %out, i64 %i
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %next = add i64 %i, 1
  %go = icmp slt i64 %next, %n
  br i1 %go, label %head, label %done
done:
  ret i64 0
}
"""
_DUMP = image_of(DUMP)


def parameters(count: int) -> Parameters:
    each = [Parameter(f"p{i}", None, is_constexpr=False) for i in range(count)]
    return Parameters("k", tuple(each), count)


def dumping(values: list[Any], stored: set[int]) -> tuple[Any, Specialization, int]:
    """A kernel specialised for ``values``; its slots; the number of slots."""
    found = specialize(parameters(len(values) + 2), [SEEN.ctypes.data, 1, *values])
    words = 10 + sum(
        1 + 2 * p.rank if isinstance(p, ArrayParam) else isinstance(p, ScalarParam)
        for p in found.signature.params[2:]
    )
    meta = {"stored": [index + 2 for index in stored]}
    return CpuExecutable(_DUMP, meta, found.signature), found, words


def slots_of(kernel: Any, found: Specialization, words: int) -> list[int]:
    SEEN[:] = -1
    kernel.launch((3, 2, 1), [found.args[0], words, *found.args[2:]])
    return SEEN[4:words].tolist()


def fast_slots(kernel: Any, words: int, values: list[Any]) -> list[int] | None:
    SEEN[:] = -1
    result = kernel.fast(3, 2, 1, SEEN.ctypes.data, words, *values)
    if result != 0:
        assert (SEEN == -1).all(), "refused, but something was written"
        return None
    return SEEN[4:words].tolist()


MEMORY = np.zeros(1 << 14, np.uint8)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    rank = draw(st.integers(1, 3))
    dtype = np.dtype(draw(st.sampled_from(["i1", "f2", "f4", "f8"])))
    shape = draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank))
    if draw(st.booleans()):
        base = np.zeros(shape, dtype)
        return base.transpose(draw(st.permutations(range(rank))))
    strides = draw(st.lists(st.integers(-1, 8), min_size=rank, max_size=rank))
    start = 4096 + draw(st.integers(0, 15)) * 4
    base = MEMORY[start : start + 4096].view(dtype)
    result = as_strided(base, shape, [s * dtype.itemsize for s in strides])
    if draw(st.integers(0, 9)) == 0:
        result.flags.writeable = False
    return result


@given(st.lists(arrays(), min_size=1, max_size=3), st.sets(st.integers(0, 2)))
@settings(max_examples=400)
def test_what_it_takes_it_takes_rightly(values: list[Any], stored: set[int]) -> None:
    stored = {index for index in stored if index < len(values)}
    kernel, found, words = dumping(values, stored)
    fast = fast_slots(kernel, words, values)
    try:
        check_stored(found.names, found.args, {index + 2 for index in stored})
    except LaunchError:
        assert fast is None
        return
    if fast is not None:
        assert fast == slots_of(kernel, found, words)


@st.composite
def blocks(draw: st.DrawFn) -> np.ndarray:
    """A part of a matrix, or of the same memory with shorter rows."""
    whole = MEMORY[:256].view("f4").reshape(draw(st.sampled_from([(8, 8), (16, 4)])))
    top, left = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    return whole[top : top + draw(st.integers(1, 5)), left : draw(st.integers(4, 8))]


@given(st.lists(blocks(), min_size=2, max_size=3))
@settings(max_examples=300)
def test_blocks_of_a_matrix_are_taken_if_they_are_apart(values: list[Any]) -> None:
    kernel, found, words = dumping(values, {0})
    fast = fast_slots(kernel, words, values)
    try:
        check_stored(found.names, found.args, {2})
    except LaunchError:
        assert fast is None
    else:
        assert fast is None or fast == slots_of(kernel, found, words)


@given(
    st.lists(arrays(), min_size=2, max_size=2),
    st.lists(arrays(), min_size=2, max_size=2),
    st.booleans(),
)
@settings(max_examples=400)
def test_it_takes_only_what_the_kernel_is_for(
    one: list[Any], other: list[Any], repeat: bool
) -> None:
    if repeat:
        other = [other[0], other[0]]
    kernel, found, words = dumping(one, {0})
    fast = fast_slots(kernel, words, other)
    wanted = specialize(parameters(4), [SEEN.ctypes.data, words, *other])
    if fast is None:
        return
    check_stored(wanted.names, wanted.args, {2})
    if all(each.size for each in (*one, *other)):  # empty ones are no one's alias
        assert wanted.signature == found.signature
    assert fast == slots_of(kernel, wanted, words)


MATRIX, CUBE = np.zeros((4, 12)), np.zeros((3, 4, 5))


def f4(count: int = 8) -> np.ndarray:
    return np.zeros(count, np.float32)


@pytest.mark.parametrize(
    "values",
    [
        [np.zeros((4, 5), "f4"), np.zeros((5, 6), "f4"), np.zeros((4, 6), "f4")],
        [np.zeros((4, 5)).T, np.zeros((40, 50))[3:9, 5:10]],
        [np.zeros((2, 3, 4, 5), "i8")],
        [np.zeros((1, 1), "f4"), np.zeros((3, 1), "f4"), np.zeros((1, 3), "f4").T],
        [np.zeros(9, ml_dtypes.bfloat16), np.zeros(9, "?"), np.zeros(9, "u2")],
        [np.zeros((4, 12))[:, ::3]],
        [
            np.zeros((4, 5)),
            np.broadcast_to(np.zeros(5), (4, 5)),
            as_strided(f4(), (3,), (0,)),
        ],
        [MATRIX[:, :5], MATRIX[:, 5:10], MATRIX[1:, 10:], MATRIX[:2, 10:]],
        [CUBE[:, :2], CUBE[:, 2:, 1:], CUBE[2:, 3:]],
        [np.zeros(3), 5, 2.5, True, False, None, -(1 << 63), (1 << 63) - 1],
        [np.zeros(3), dtypes.f32, -0.0, float("inf")],
        [np.zeros(3), np.int64(-(1 << 63)), np.int32(-7), np.int32((1 << 31) - 1)],
        [np.zeros(3), np.float64(0.1), np.float32(0.1), np.float32(1e-45)],
        [np.zeros(3), np.float32("nan"), np.float32("-inf"), np.float64(-0.0)],
    ],
)
def test_usual_arguments_are_taken(values: list[Any]) -> None:
    kernel, found, words = dumping(values, {0})
    kernel.launch((1, 1, 1), found.args)  # starts the threads
    assert fast_slots(kernel, words, values) == slots_of(kernel, found, words)


def started(text: str, stored: list[int], *params: Any) -> CpuExecutable:
    fastcall.publish(thread_layer())
    image = image_of(text)
    return CpuExecutable(image, {"stored": stored}, Signature(params))


A = ArrayParam("A", dtypes.f32, 1, 0)
C = ArrayParam("C", dtypes.f32, 1, 0)
FACTOR = ScalarParam("factor", "f64")


def scaling(*more: Any) -> Any:
    return started(SCALE, [1], A, C, FACTOR, *more).fast


def frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def test_it_runs_the_kernel() -> None:
    a = np.arange(8, dtype=np.float32)
    c = f4()
    assert scaling()(1, 1, 1, a, c, 3.0) == 0
    assert np.array_equal(c, a * 3)
    assert scaling()(1, 1, 1, frozen(a), c, 4.0) == 0
    assert np.array_equal(c, a * 4)


class Sub(np.ndarray):
    pass


SHARED = f4(20)
REFUSED: list[tuple[Any, ...]] = [
    (),
    (f4(),),
    (f4(), f4()),
    (f4(), f4(), 1.0, 7),
    (f4(), f4(), 1),
    (f4(), f4(), True),
    (f4(), f4(), np.float16(1)),
    (f4(), f4(), np.int64(1)),
    (f4(), f4(), None),
    (f4(), None, 1.0),
    (f4(), [1.0], 1.0),
    (f4(), 1.0, 1.0),
    (f4().view(Sub), f4(), 1.0),
    (np.zeros(8), f4(), 1.0),
    (np.zeros(8, ">f4"), f4(), 1.0),
    (np.zeros((8, 1), "f4"), f4(), 1.0),
    (f4()[::2], f4(), 1.0),
    (f4()[::-1], f4(), 1.0),
    (as_strided(f4(), (8,), (0,)), f4(), 1.0),
    (f4(), frozen(f4()), 1.0),
    (SHARED, SHARED, 1.0),
    (SHARED[1:], SHARED[:-1], 1.0),
]


@pytest.mark.parametrize("values", REFUSED)
def test_unusual_arguments_are_refused(values: tuple[Any, ...]) -> None:
    assert scaling()(1, 1, 1, *values) == 1


def test_wrong_grids_are_refused() -> None:
    fast = scaling()
    for grid in [(), (1,), (1, 1), (1, 1, 1.0), (1, True, 1), (1 << 70, 1, 1)]:
        assert fast(*grid, f4(), f4(), 1.0) == 1


def test_misaligned_arrays_are_refused() -> None:
    odd = np.zeros(33, np.uint8)[1:].view(np.float32)
    assert odd.flags.aligned is False
    assert scaling()(1, 1, 1, odd, f4(), 1.0) == 1


@pytest.mark.parametrize(
    ("known", "others"),
    [
        (1 << 40, [1 << 41, float(1 << 40), np.int64(1 << 41), 1 << 70]),
        (-3, [3, -3.0]),
        (1, [True, 0, 1.0]),
        (2.5, [2, np.float64(2.25), 2.500001]),
        (0.0, [-0.0, 0, False]),
    ],
)
def test_numbers_computed_anew_are_the_same_constants(
    known: Any, others: list[Any]
) -> None:
    fast = scaling(ConstParam("K", known))
    again = type(known)(str(known))
    assert fast(1, 1, 1, f4(), f4(), 1.0) == 0  # its default
    assert fast(1, 1, 1, f4(), f4(), 1.0, again) == 0
    for other in others:
        assert fast(1, 1, 1, f4(), f4(), 1.0, other) == 1


def test_constants_are_told_apart_by_identity() -> None:
    value = ("some", "constant")
    fast = scaling(ConstParam("K", value), ConstParam("L", None))
    assert fast(1, 1, 1, f4(), f4(), 1.0) == 0
    assert fast(1, 1, 1, f4(), f4(), 1.0, value) == 0
    assert fast(1, 1, 1, f4(), f4(), 1.0, value, None) == 0
    assert fast(1, 1, 1, f4(), f4(), 1.0, ("some", "other"), None) == 1
    assert fast(1, 1, 1, f4(), f4(), 1.0, value, 0) == 1


def test_aliases_must_be_the_very_same_view() -> None:
    a = ArrayParam("A", dtypes.f32, 1, 0, alias=0)
    c = ArrayParam("C", dtypes.f32, 1, 0, alias=0)
    fast = started(SCALE, [1], a, c, FACTOR).fast
    assert fast is not None
    one = f4()
    assert fast(1, 1, 1, one, one[:], 1.0) == 0
    assert fast(1, 1, 1, one, one[:-1], 1.0) == 1
    assert fast(1, 1, 1, one, f4(), 1.0) == 1


def test_no_thread_has_been_started(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = scaling()
    limit = fastcall.process[fastcall.P_LIMIT]
    fastcall.process[fastcall.P_LIMIT] = 0
    assert fast(1, 1, 1, f4(), f4(), 1.0) == 1
    fastcall.process[fastcall.P_LIMIT] = limit
    assert fast(1, 1, 1, f4(), f4(), 1.0) == 0


def test_workspace_of_the_thread_is_used() -> None:
    seen = np.zeros(2, np.int64)
    results: list[int] = []

    def work() -> None:
        kernel = started(SCRATCH, [0], ArrayParam("A", dtypes.i64, 1, 0))
        assert kernel.fast is not None
        results.append(kernel.fast(1, 1, 1, seen))  # there is none yet
        found = specialize(parameters(1), [seen])
        kernel.launch((1, 1, 1), found.args)
        address = seen[1]
        seen[:] = 0
        results.append(kernel.fast(1, 1, 1, seen))
        results.append(seen[1] == address)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == [1, 0, True]


def test_threads_at_once() -> None:
    kernel = started(TEAM, [0], ArrayParam("A", dtypes.i64, 1, 0))
    fast = kernel.fast
    assert fast is not None
    totals = [np.zeros(1, np.int64) for _ in range(4)]

    def work(mine: np.ndarray) -> None:
        for _ in range(500):
            assert fast(1, 1, 1, mine) == 0

    threads = [threading.Thread(target=work, args=(each,)) for each in totals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(each[0]) for each in totals] == [32000] * 4


def test_the_builtin_keeps_what_it_needs() -> None:
    fast = scaling(ConstParam("K", ("made", "here")))
    gc.collect()
    a, c = np.ones(8, np.float32), f4()
    assert fast(1, 1, 1, a, c, 3.0) == 0
    assert c[0] == 3


def test_no_reference_is_lost_or_gained() -> None:
    fast = scaling()
    a, c = f4(), f4()
    before = [sys.getrefcount(each) for each in (a, c, 0, 1)]
    for _ in range(1000):
        fast(1, 1, 1, a, c, 1.0)
        fast(1, 1, 1, a, a, 1.0)
    after = [sys.getrefcount(each) for each in (a, c, 0, 1)]
    assert max(abs(x - y) for x, y in zip(before, after)) < 20


def test_the_entry_is_built_once_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path))
    fastcall._entry.cache_clear()
    assert scaling()(1, 1, 1, f4(), f4(), 1.0) == 0
    (kept,) = tmp_path.glob("cpu-entry-*")
    monkeypatch.setattr(entry, "build_entry", None)
    fastcall._entry.cache_clear()
    assert scaling()(1, 1, 1, f4(), f4(), 1.0) == 0
    kept.unlink()
    fastcall._entry.cache_clear()


def test_the_entry_is_built_for_what_is_called_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @xetile.kernel(grid=1)
    def double(x):
        tile = xetile.init_tile(x, [0], (8,))
        xetile.store_tile(2 * xetile.load_tile(tile), tile)

    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path))
    fastcall._entry.cache_clear()
    x = np.ones(8, np.float32)
    double(x)
    assert not list(tmp_path.glob("cpu-entry-*"))
    double(x)
    assert list(tmp_path.glob("cpu-entry-*"))
    monkeypatch.setattr(double, "launch_anew", None)  # from here on the entry does
    double(x)
    assert (x == 8).all()
    fastcall._entry.cache_clear()


@pytest.mark.parametrize("error", [ImportError, OSError, RuntimeError, InternalError])
def test_where_the_entry_cannot_be_built_there_is_no_fast_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: type[Exception]
) -> None:
    def fail() -> None:
        raise error("no LLVM")

    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(entry, "build_entry", fail)
    fastcall._entry.cache_clear()
    assert scaling() is None
    fastcall._entry.cache_clear()


def test_all_kernels_share_the_entry() -> None:
    one, other = started(SCALE, [1], A, C, FACTOR), started(SCALE, [1], A, C, FACTOR)
    assert one.fast is not None
    assert other.fast is not None
    shared = [gc.get_referents(each.fast.__module__) for each in (one, other)]
    assert shared[0] != shared[1]  # each keeps its own kernel
    assert fastcall._entry() in shared[0]
    assert fastcall._entry() in shared[1]


def test_the_entry_is_loaded_by_threads_at_once() -> None:
    """Whichever copy stays for later kernels, each kernel keeps the one it got."""
    fastcall._entry.cache_clear()
    start, kernels = threading.Barrier(4), list[Any]()

    def work() -> None:
        start.wait()
        kernels.append(scaling())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fastcall._entry.cache_clear()
    gc.collect()
    for fast in kernels:
        a, c = np.ones(8, np.float32), f4()
        assert fast(1, 1, 1, a, c, 3.0) == 0
        assert (c == 3).all()


def test_layouts_hold_here() -> None:
    assert fastcall._LAYOUTS_HOLD


def test_without_them_there_is_no_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastcall, "_LAYOUTS_HOLD", False)
    assert scaling() is None


def test_it_takes_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch has no C exchange API of DLPack")
    wide = torch.arange(24.0).reshape(4, 6)
    values = [wide, wide[1:3, 2:5], wide.to(torch.bfloat16), torch.nn.Parameter(wide)]
    for value in values:
        with torch.no_grad():
            kernel, found, words = dumping([value], {0})
            general = slots_of(kernel, found, words)
            version = value._version
            assert fast_slots(kernel, words, [value]) == general
        assert value._version == version + 1
    for other in (wide.double(), wide[0], wide.T, values[3], wide.to_sparse(), "wide"):
        kernel, found, words = dumping([wide], set())
        slots_of(kernel, found, words)
        assert fast_slots(kernel, words, [other]) is None
    assert sys.getrefcount(wide) < 20  # each launch gives back what it takes
