"""Queues and memory: where a launch runs, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from launched import counting, grid_of, scale

import xetl
from xetl.errors import LaunchError
from xetl.settings import config
from xetl_xegpu.launch import devices, places

TEXT = """
gpu.func @k(%A: memref<8x16xf32>, %B: memref<8x16xf32>) kernel {
  %a = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
  %b = xetile.init_tile %B[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
  %v = xetile.load_tile %a : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  xetile.store_tile %v, %b : vector<8x16xf32>, !xetile.tile<8x16xf32>
  gpu.return
}
"""


def queue(**options: Any) -> Any:
    return devices.dpctl().SyclQueue(devices.default_queue().sycl_device, **options)


def stranger() -> Any:
    """A queue of the same device, but of a context of its own."""
    device = devices.default_queue().sycl_device
    return devices.dpctl().SyclQueue(devices.dpctl().SyclContext([device]), device)


def usm(array: Any, where: Any, kind: str = "Shared") -> Any:
    memory = getattr(devices.dpctl().memory, f"MemoryUSM{kind}")
    return memory(array.nbytes, alignment=64, queue=where)


@pytest.mark.parametrize("options", [{}, {"property": "in_order"}])
def test_a_queue_of_the_user(options: dict[str, Any]) -> None:
    a = counting((20, 32))
    c = np.zeros_like(a)
    scale[grid_of(a)](a, c, queue=queue(**options))
    assert np.array_equal(c, 2 * a)


def test_a_queue_for_a_text() -> None:
    a, b = counting((8, 16)), np.zeros((8, 16), np.float32)
    event = xetl.load_mlir(TEXT)["k"][1](a, b, queue=queue(), wait=False)
    assert event is not None
    event.wait()
    assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", ["Shared", "Host", "Device"])
def test_unified_memory_is_used_where_it_is(kind: str) -> None:
    where = queue()
    a, room = np.arange(16, dtype=np.uint8), np.zeros(16, np.uint8)
    given, result = usm(a, where, kind), usm(a, where, kind)
    given.copy_from_host(a)
    for _ in range(2):
        increment[1](given, result)
        result.copy_to_host(room)
        assert np.array_equal(room, a + 1)


class Described:
    """An array in memory of dpctl, as a class of a user states it."""

    def __init__(self, memory: Any, like: Any, **more: Any) -> None:
        own = {"shape": like.shape, "typestr": like.dtype.str}
        interface = memory.__sycl_usm_array_interface__
        self.__sycl_usm_array_interface__ = {**interface, **own, **more}


@pytest.mark.parametrize("kind", ["Shared", "Host", "Device"])
@pytest.mark.parametrize("owner", ["queue", "context", "capsules", "device"])
def test_what_only_states_the_interface(owner: str, kind: str) -> None:
    default = devices.dpctl().SyclQueue(devices.default_queue().sycl_device)
    context = default.sycl_context
    first, second = {
        "queue": (default, default),
        "context": (context, context),
        "capsules": (default._get_capsule(), context._get_capsule()),
        "device": (default.sycl_device.filter_string,) * 2,
    }[owner]
    a = counting((20, 32))
    given, result = usm(a, default, kind), usm(a, default, kind)
    given.copy_from_host(a.view(np.uint8).reshape(-1))
    arrays = Described(given, a, syclobj=first), Described(result, a, syclobj=second)
    scale[grid_of(a)](*arrays)
    found = result.copy_to_host().view(np.float32).reshape(a.shape)
    assert np.array_equal(found, 2 * a)


def test_arrays_of_a_device_are_launched_there() -> None:
    """Whatever is usual: not on the CPU, which has no queues."""
    where = queue()
    a, c = counting((20, 32)), np.zeros((20, 32), np.float32)
    given = usm(a, where, "Device")
    given.copy_from_host(a.view(np.uint8).reshape(-1))
    del config.backend
    event = scale[grid_of(a)](Described(given, a), c, queue=where, wait=False)
    assert event is not None
    event.wait()
    assert np.array_equal(c, 2 * a)
    text = xetl.load_mlir(TEXT)["k"]
    small, b = counting((8, 16)), np.zeros((8, 16), np.float32)
    given.copy_from_host(small.view(np.uint8).reshape(-1))
    text[1](Described(given, small), b, queue=where)
    assert np.array_equal(b, small)


def test_a_part_of_memory_and_an_array() -> None:
    a, where = counting((20, 32)), queue()
    given, c = usm(a, where, "Device"), np.zeros((10, 16), np.float32)
    given.copy_from_host(a.view(np.uint8).reshape(-1))
    part = a[1::2, 8:24]
    steps = tuple(step // a.itemsize for step in part.strides)
    scale[grid_of(part)](Described(given, part, strides=steps, offset=32 + 8), c)
    assert np.array_equal(c, 2 * part)


@xetl.xetile.kernel
def increment(A, C):
    a = xetl.xetile.load_tile(xetl.xetile.init_tile(A, [0], (16,)))
    xetl.xetile.store_tile(a + 1, xetl.xetile.init_tile(C, [0], (16,)))


def test_memory_that_was_freed(pretend: Any) -> None:
    """A GPU that cannot read all memory would be lost."""
    pretend(reads_host=False)
    where = devices.default_queue()
    a = counting((16, 16))
    kept, gone = (usm(a, where) for _ in range(2))
    stated = [dict(each.__sycl_usm_array_interface__) for each in (kept, gone)]
    for each in stated:
        each |= {"typestr": "<f4", "shape": (16, 16)}
    there, lost = (
        SimpleNamespace(__sycl_usm_array_interface__=each) for each in stated
    )
    kept.copy_from_host(a.view(np.uint8).reshape(-1))
    scale[1](there, lost)
    del gone
    with pytest.raises(LaunchError, match="`C` states memory that is not") as caught:
        xetl.xetile.kernel(scale.fn)[1](there, lost)
    assert caught.value.code == "X0813"
    scale[1](there, there)


def test_memory_of_another_context() -> None:
    a = np.arange(16, dtype=np.uint8)
    here, there = usm(a, queue()), usm(a, stranger())
    here.copy_from_host(a)
    there.copy_from_host(a)
    for options in ({}, {"queue": queue()}):
        with pytest.raises(LaunchError, match="cannot reach") as caught:
            increment[1](here, there, **options)
        assert caught.value.code == "X0813"
        assert "`C` is in memory of" in caught.value.message
    assert np.array_equal(np.frombuffer(there.copy_to_host(), np.uint8), a)
    increment[1](there, there)  # on the queue of its own


def test_memory_whose_owner_names_no_queue() -> None:
    a = np.arange(16, dtype=np.uint8)
    interface = a.__array_interface__
    hidden = SimpleNamespace(
        __sycl_usm_array_interface__=interface, usm_type="device", shape=a.shape
    )
    with pytest.raises(LaunchError, match="`A` is in memory of") as caught:
        increment[1](hidden, a)
    assert caught.value.code == "X0813"
    shared = SimpleNamespace(
        __sycl_usm_array_interface__=interface, usm_type="shared", shape=a.shape
    )
    result = np.zeros_like(a)
    increment[1](shared, result)
    assert np.array_equal(result, a + 1)


def test_what_is_no_queue() -> None:
    a = counting((16, 16))
    with pytest.raises(LaunchError, match="`queue=` is an int, which is no queue"):
        scale[1](a, a, queue=3)


def test_a_stream_of_torch_is_known_by_its_address() -> None:
    own = queue(property="in_order")
    stream = SimpleNamespace(sycl_queue=own.addressof_ref())
    found = places.as_queue(stream)
    assert found == own
    a = counting((16, 16))
    scale[1](a, a, queue=stream)
    assert a[0, 1] == 2


def test_an_event_says_when_it_is_done() -> None:
    a = counting((64, 64))
    c = np.zeros_like(a)
    event = scale[grid_of(a)](a, c, wait=False)
    assert event is not None
    event.wait()
    assert event.done
    assert np.array_equal(c, 2 * a)
    # Arguments that nobody else holds stay alive until it is done.
    events = [scale[grid_of(a)](a.copy(), c, wait=False) for _ in range(20)]
    for each in events:
        assert each is not None
        each.wait()
    assert np.array_equal(c, 2 * a)


def test_events_of_the_host_are_done_at_once() -> None:
    a = counting((16, 16))
    for _ in range(2):  # the second one is a shortcut
        event = scale[1](a, a, wait=False, backend="cpu")
        assert event is not None
        assert event.done
        event.wait()
    assert a[0, 1] == 4


def test_a_plan_keeps_its_place() -> None:
    a = counting((16, 16))
    c = np.zeros_like(a)
    plan = scale.bind(a, c, 3.0, grid=1)
    assert plan() is None
    a += 1
    plan()
    assert np.array_equal(c, 3 * a)
    event = scale.bind(a, c, 4.0, grid=1, queue=queue(), wait=False)()
    assert event is not None
    event.wait()
    assert np.array_equal(c, 4 * a)


FORKED = """
import os, sys
import numpy as np
sys.path.insert(0, {folder!r})
from launched import scale
from xetl.errors import LaunchError
a = np.ones((16, 16), np.float32)
scale[1](a, a, backend="xegpu")
child = os.fork()
if child == 0:
    try:
        scale[1](a, a, backend="xegpu")
    except LaunchError as error:
        os._exit(7 if error.code == "X0830" and "spawn" in error.help else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_a_forked_process_is_refused() -> None:
    folder = __file__.rpartition("/")[0]
    script = FORKED.format(folder=folder)
    path = ":".join(sys.path)
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": path})
