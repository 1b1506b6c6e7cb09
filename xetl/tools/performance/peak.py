"""The most that this machine can do: multiply-adds in registers, and copying memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from xetl.runtime.measure import time_calls

_CHAINS = {8: 12, 16: 24}
"""Sums that do not depend on each other, so that no multiply waits for one, by the f32
of a register: they and a factor stay in 16 registers, or in 32."""

_LEAST = 1.25e9
"""Operations of a thread in a call, about 5 ms."""

_COPIED = 1 << 26
"""Bytes of a thread: more than its part of any cache."""

_SECONDS = 0.3


@dataclass(frozen=True)
class Peak:
    """What limits every kernel.

    Attributes:
        gflops: billions of operations a second, of which a multiply-add has two.
        gbytes: billions of bytes a second, read or written.
    """

    gflops: float
    gbytes: float

    def limit(self, flops: float, moved: float) -> float:
        """Billions of operations a second, where ``moved`` bytes go with ``flops``."""
        return min(self.gflops, self.gbytes * flops / max(moved, 1.0))


@cache
def measure_peak(dtype: str = "f32") -> Peak:
    """Measure both, on all processors that this process may use; takes a second."""
    threads = len(os.sched_getaffinity(0))
    return Peak(MultiplyAdds(dtype, threads).measure(), _bandwidth(threads))


class MultiplyAdds:
    """A loop of f32 FMA, or of dot products of bf16 pairs, on several threads.

    Where there are none of these bf16 is multiplied as f32, as f16 is everywhere.

    Attributes:
        operations: of a call.
        lanes: of a register, as f32.
        is_dot: whether they are dot products.
    """

    def __init__(
        self,
        dtype: str,
        threads: int,
        operations: float = 0,
        chains: int | None = None,
    ) -> None:
        """Compile it.

        Args:
            dtype: of the factors.
            threads: how many run it.
            operations: at least so many on each thread in a call, which takes about
                5 ms.
            chains: sums that do not depend on each other; by default enough of them.
        """
        features = llvm.get_host_cpu_features()
        lanes = 16 if features.get("avx512f") else 8
        is_dot = dtype == "bf16" and bool(features.get("avx512bf16"))
        self.lanes, self.is_dot = lanes, is_dot
        chains = chains or _CHAINS[lanes]
        least = _LEAST * chains / _CHAINS[lanes]
        self._run = compiled(_loop(lanes, is_dot, chains), "peak", 1)
        size = lanes * max(chains, 2)
        self._results = [(ctypes.c_float * size)() for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads)
        of_a_trip = (4 if is_dot else 2) * lanes * chains
        self._trips = int(max(operations, least)) // of_a_trip
        self.operations = of_a_trip * self._trips * threads

    def __call__(self) -> None:
        """Run; the calling thread works as well, for to wake another takes a while."""
        first, *others = map(ctypes.addressof, self._results)
        busy = [self._pool.submit(self._run, each, self._trips) for each in others]
        self._run(first, self._trips)
        for each in busy:
            each.result()

    def measure(self) -> float:
        """Billions of operations a second, the most that was seen."""
        return 1e-9 * self.operations / min(time_calls(self, _SECONDS))


def compiled(text: str, name: str, numbers: int) -> Callable[..., None]:
    """A function of LLVM IR for this processor: of an address and so many numbers."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
    )
    engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * numbers)
    function = kind(engine.get_function_address(name))
    # The code lives as long as the engine.
    return lambda *given: function(*given) if engine else None


def _bandwidth(threads: int) -> float:
    """Billions of bytes a second, of a copy on all threads."""
    pairs = [(np.ones(_COPIED // 8), np.zeros(_COPIED // 8)) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            for done in [pool.submit(np.copyto, to, of) for of, to in pairs]:
                done.result()

        return 2e-9 * _COPIED * threads / min(time_calls(copy, _SECONDS))


def _loop(lanes: int, is_dot: bool, count: int) -> str:
    """LLVM IR: ``trips`` times, multiply and add to the vectors, then store them."""
    total = f"<{lanes} x float>"
    if is_dot:
        factor = f"<{2 * lanes} x bfloat>"
        multiply = f"@llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
        call = f"call {total} {multiply}({total} %c{{0}}, {factor} %x, {factor} %x)"
    else:
        factor, multiply = total, f"@llvm.fma.v{lanes}f32"
        call = f"call {total} {multiply}({factor} %x, {factor} %x, {total} %c{{0}})"
    order = [total, factor, factor] if is_dot else [factor, factor, total]
    chains = range(count)
    phis = [
        f"%c{i} = phi {total} [ zeroinitializer, %entry ], [ %s{i}, %loop ]"
        for i in chains
    ]
    sums = [f"%s{i} = {call.format(i)}" for i in chains]
    stores = [
        f"%p{i} = getelementptr {total}, ptr %to, i64 {i}\n"
        f"store {total} %s{i}, ptr %p{i}, align 4"
        for i in chains
    ]
    # A factor that the compiler does not know: products of constants it would fold.
    lines = [
        f"declare {total} {multiply}({', '.join(order)})",
        "define void @peak(ptr %to, i64 %trips) {",
        "entry:",
        f"%x = load {factor}, ptr %to, align 4",
        "br label %loop",
        "loop:",
        "%trip = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *phis,
        *sums,
        "%next = add i64 %trip, 1",
        "%again = icmp slt i64 %next, %trips",
        "br i1 %again, label %loop, label %end",
        "end:",
        *stores,
        "ret void",
        "}",
    ]
    return "\n".join(lines)
