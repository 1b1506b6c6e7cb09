"""The executable: slots, workspaces and threads of the CPU ABI."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from native_kernels import SCALE, SCRATCH, TEAM, image_of

from xetl.backend import ArrayView
from xetl.errors import InternalError
from xetl.language import dtypes
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl_cpu.launch.executable import CpuExecutable

A = ArrayParam("A", dtypes.f32, 1, 0)
C = ArrayParam("C", dtypes.f32, 1, 0)


def view(array: np.ndarray) -> ArrayView:
    return ArrayView(
        array.ctypes.data,
        dtypes.DType.of(array.dtype),
        array.shape,
        tuple(s // array.itemsize for s in array.strides),
        not array.flags.writeable,
        array,
    )


def executable(text: str, *params: object) -> CpuExecutable:
    return CpuExecutable(image_of(text), {"stored": []}, Signature(params))


def test_arrays_and_scalars_reach_their_slots() -> None:
    constant = ConstParam("BM", 32)
    kernel = executable(SCALE, A, constant, C, ScalarParam("factor", "f64"))
    a = np.arange(20, dtype=np.float32)
    c = np.zeros(40, np.float32)
    kernel.launch((1, 1, 1), [view(a[::2]), view(c[::-3][:10]), 2.5])
    assert np.array_equal(c[::-3][:10], a[::2] * 2.5)
    assert np.count_nonzero(c) == 9


def test_wrong_number_of_arguments_is_our_mistake() -> None:
    kernel = executable(SCALE, A, C)
    with pytest.raises(InternalError, match="14 slots was given 11"):
        kernel.launch((1, 1, 1), [view(np.zeros(3, np.float32))])


def test_workspace_grows_and_stays() -> None:
    kernel = executable(SCRATCH, ArrayParam("A", dtypes.i64, 1, 0))
    seen = np.zeros(2, np.int64)
    kernel.launch((1, 1, 1), [view(seen)])
    size, address = seen
    assert size >= 100000
    assert address % 4096 == 2048  # large arrays begin near the start of a page
    seen[:] = 0
    kernel.launch((1, 1, 1), [view(seen)])
    assert tuple(seen) == (size, address)


def test_every_python_thread_has_its_own_workspace() -> None:
    kernel = executable(SCRATCH, ArrayParam("A", dtypes.i64, 1, 0))
    seen = [np.zeros(2, np.int64) for _ in range(4)]
    gate = threading.Barrier(4)

    def work(mine: np.ndarray) -> None:
        kernel.launch((1, 1, 1), [view(mine)])
        gate.wait()

    threads = [threading.Thread(target=work, args=(each,)) for each in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({int(each[1]) for each in seen}) == 4


def test_kernels_fork_and_join() -> None:
    kernel = executable(TEAM, ArrayParam("A", dtypes.i64, 1, 0))
    total = np.zeros(1, np.int64)
    for _ in range(100):
        kernel.launch((1, 1, 1), [view(total)])
    assert total[0] == 6400


def test_python_threads_launch_at_once() -> None:
    kernel = executable(TEAM, ArrayParam("A", dtypes.i64, 1, 0))
    totals = [np.zeros(1, np.int64) for _ in range(4)]

    def work(mine: np.ndarray) -> None:
        for _ in range(50):
            kernel.launch((1, 1, 1), [view(mine)])

    threads = [threading.Thread(target=work, args=(each,)) for each in totals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [int(each[0]) for each in totals] == [3200] * 4
