"""Overlap is exact: compared with counting bytes and with NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from xetl.errors import LaunchError
from xetl.runtime.arrays import locate
from xetl.runtime.overlap import check_stored, overlap, overlaps_itself

MEMORY = np.zeros(4096, np.uint8)


@st.composite
def strided(draw: st.DrawFn) -> np.ndarray:
    rank = draw(st.integers(1, 3))
    dtype = np.dtype(draw(st.sampled_from(["u1", "i2", "f4", "f8"])))
    shape = draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank))
    strides = draw(st.lists(st.integers(-9, 9), min_size=rank, max_size=rank))
    start = 2048 + draw(st.integers(-40, 40))
    base = MEMORY[start:].view(np.uint8)[: (4096 - start) // 8 * 8].view(dtype)
    steps = [stride * dtype.itemsize for stride in strides]
    return as_strided(base, shape, steps)


def bytes_of(array: np.ndarray) -> list[int]:
    start = array.__array_interface__["data"][0]
    return [
        start + sum(i * s for i, s in zip(index, array.strides)) + byte
        for index in itertools.product(*map(range, array.shape))
        for byte in range(array.itemsize)
    ]


@given(strided(), strided())
@settings(max_examples=300)
def test_overlap_is_exact(left: np.ndarray, right: np.ndarray) -> None:
    expected = bool(set(bytes_of(left)) & set(bytes_of(right)))
    assert overlap(locate(left), locate(right)) == expected
    assert np.shares_memory(left, right) == expected


@given(strided())
@settings(max_examples=300)
def test_overlap_with_itself_is_exact(array: np.ndarray) -> None:
    places = bytes_of(array)
    assert overlaps_itself(locate(array)) == (len(set(places)) < len(places))


def check(stored: set[int], *arrays: np.ndarray) -> None:
    names = "ABCD"[: len(arrays)]
    check_stored(names, [locate(each) for each in arrays], stored)


def test_the_very_same_view_is_legal() -> None:
    a = np.zeros((4, 4))
    check({0, 1}, a, a[:])


def test_interleaved_columns_are_legal() -> None:
    a = np.zeros((4, 4))
    check({0, 1}, a[:, ::2], a[:, 1::2])


def test_what_is_only_read_may_overlap() -> None:
    a = np.zeros(8)
    check({2}, a[1:], a[:-1], np.zeros(8))


def test_empty_arrays_overlap_nothing() -> None:
    a = np.zeros(8)
    check({0, 1}, a, a[3:3])
    check({0}, as_strided(a, (0, 5), (0, 0)))


@pytest.mark.parametrize("views", [np.s_[1:], np.s_[::-1], np.s_[::2]])
def test_any_other_overlap_is_refused(views: slice) -> None:
    a = np.zeros(8)
    with pytest.raises(LaunchError, match="`B` is written, but shares memory with `A`"):
        check({1}, a, a[views])
    with pytest.raises(LaunchError, match="`A` is written, but shares memory with `B`"):
        check({0}, a, a[views])


def test_the_same_bytes_as_another_dtype_are_refused() -> None:
    a = np.zeros(8, np.float32)
    with pytest.raises(LaunchError, match="shares memory"):
        check({0}, a, a.view(np.int32))


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(np.zeros(4), (4, 4)),
        as_strided(np.zeros(16), (3, 3), (8, 8)),
        as_strided(np.zeros(16), (3, 4), (16, 8)),
    ],
)
def test_outputs_that_overlap_themselves(array: np.ndarray) -> None:
    view = locate(array)
    assert overlaps_itself(view)
    writable = as_strided(np.zeros(16), array.shape, array.strides)
    with pytest.raises(LaunchError, match="some of its elements share memory"):
        check({0}, writable)


def test_readonly_output() -> None:
    a = np.zeros(4)
    a.flags.writeable = False
    check(set(), a)
    with pytest.raises(LaunchError, match="`A` is written by the kernel, but the arr"):
        check({0}, a)
