"""Run by `test_nested_launches.py` in processes of their own.

A signal handler or a finaliser may run between any two lines of a launch. Here a
tracer does so at each line in turn: it launches, or forks.

Arguments: ``launch``, ``print``, ``prepacked`` or ``fork``.
"""

import faulthandler
import os
import signal
import sys
import traceback
from threading import Thread

import ml_dtypes
import numpy as np

from xetl import ops, xetile
from xetl.xetile import cdiv, constexpr, f32
from xetl_cpu.launch import threads

BF16 = np.dtype(ml_dtypes.bfloat16)
WATCHED = ("xetl_cpu/launch", "xetl/runtime/placement", "xetl/prepacked")


@xetile.kernel
def mm(A, B, C, BM: constexpr, ACC: constexpr):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BM
    a = xetile.init_tile(A, [m, 0], (BM, BM))
    b = xetile.init_tile(B, [0, n], (BM, BM))
    acc = xetile.zeros((BM, BM), ACC)
    for _ in range(0, A.shape[1], BM):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BM])
        b = xetile.update_tile_offset(b, [BM, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BM)))


@xetile.kernel
def say(X):
    xetile.device_print("x is {}", X[0])


def product(n):
    a, out = np.ones((n, n), BF16), np.zeros((n, n), "f4")
    mm[cdiv(n, 32), cdiv(n, 32)](a, a, out, BM=32, ACC=f32)
    assert (out == n).all(), (n, out)


def on_line(number, action, outer):
    """Run ``outer``, and ``action`` at its watched line of that number, if any."""
    seen = [0]

    def trace(frame, event, _):
        if not any(name in frame.f_code.co_filename for name in WATCHED):
            return None
        if event == "line":
            seen[0] += 1
            if seen[0] == number:
                sys.settrace(None)
                action()
        return trace

    sys.settrace(trace)
    try:
        outer()
    finally:
        sys.settrace(None)
    return seen[0] >= number


def at_each_line(action, outer):
    """In a thread of its own each time: it begins without a workspace."""
    number, goes_on = 0, True
    failed = []

    def one():
        nonlocal goes_on
        try:
            goes_on = on_line(number, action, outer)
        except BaseException as error:
            failed.append(error)
            raise

    while goes_on:
        number += 1
        thread = Thread(target=one)
        thread.start()
        thread.join()
        assert not failed, (number, failed)
    return number


def launches():
    def outer():
        mm.shortcuts.clear()
        product(96)

    def inner():
        mm.shortcuts.clear()
        product(320)
        product(160)

    return at_each_line(inner, outer)


def prints():
    x = np.full(1, 7, np.int64)
    return at_each_line(lambda: product(320), lambda: say[1](x))


def prepacked():
    b = np.ones((96, 96), "f4")

    def outer():
        packed = [ops.prepack(b)]

        def twice():
            for _ in range(2):
                assert (ops.matmul(b, packed[0]) == 96).all()

        twice.packed = packed[0]
        return twice

    current = [outer()]

    def run():
        current[0] = outer()
        current[0]()

    def inner():
        assert (ops.matmul(b, current[0].packed) == 96).all()
        product(320)

    return at_each_line(inner, run)


def forks():
    def inner():
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends it if it hangs
            in_child.append(True)
            return  # and goes on with the launch
        _, status = os.waitpid(child, 0)
        assert status == 0, status

    in_child = []

    def outer():
        mm.shortcuts.clear()
        try:
            product(96)
            product(96)
            mm.shortcuts.clear()
            product(320)
        finally:
            if in_child:
                if sys.exc_info()[0] is not None:
                    traceback.print_exc()
                os._exit(sys.exc_info()[0] is not None)

    return at_each_line(inner, outer)


def start():
    """A launch while the threads are being started."""
    done = []

    def inner():
        product(96)
        done.append(1)

    number = 1
    assert on_line(int(sys.argv[2]), inner, lambda: product(64))
    product(320)
    return number + threads.thread_layer().limit


faulthandler.dump_traceback_later(100, exit=True)
if sys.argv[1] != "start":
    for size in (96, 160, 320):
        product(size)
each = {
    "launch": launches,
    "print": prints,
    "prepacked": prepacked,
    "fork": forks,
    "start": start,
}
count = each[sys.argv[1]]()
assert count > 2
sys.stdout.write("done")
