"""The most that this machine can do: products in registers or tiles, copying memory.

Products of tiles read random numbers: silicon is a seventh faster on zeros, which no
matrix has.  Sources: Intel SDM, volume 1, chapter 18; LLVM's intrinsics.
"""

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
from numpy.typing import NDArray

from xetl.runtime.measure import time_calls
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels.amx_tiles import CONFIG
from xetl_cpu.targets import tiles_are_permitted

_CHAINS = {8: 12, 16: 24}
"""Sums that do not depend on each other, so that no multiply waits for one, by the f32
of a register: they and a factor stay in 16 registers, or in 32."""

_LEAST = 1.25e9
"""Operations of a thread in a call, about 5 ms."""

_COPIED = 1 << 26
"""Bytes of a thread: more than its part of any cache."""

_SECONDS = 0.3

_TILE, _TILES = 1024, 16
"""Bytes of a tile, and how many of A and of B a loop reads: they stay in L1."""

_TILE_PRODUCTS = {"bf16": ("tdpbf16ps", 32), "i8": ("tdpbssd", 64)}
"""By the type of the factors: the instruction, and elements of a tile's row of A."""


@dataclass(frozen=True)
class Loop:
    """LLVM IR of a function ``peak``, of memory and a number of trips.

    Attributes:
        operations: of a trip; a multiply-add is two.
        memory: bytes it reads, or stores its sums to.
        lanes: f32 of a register; 0: of tiles.
        is_dot: whether a multiply-add is of pairs.
    """

    text: str
    operations: int
    memory: int
    lanes: int = 0
    is_dot: bool = False


@cache
def measure_peak(dtype: str = "f32") -> tuple[float, float]:
    """10^9 operations and bytes a second of all processors that this process may use.

    It takes a second.
    """
    threads = len(os.sched_getaffinity(0))
    products = Products(fastest_loop(dtype), threads)
    return products.measure(), _bandwidth(threads)


def fastest_loop(dtype: str) -> Loop:
    """Of tiles where this machine has them for ``dtype``, else of registers."""
    features = llvm.get_host_cpu_features()
    kind = "amx-int8" if dtype == "i8" else "amx-bf16"
    if dtype in _TILE_PRODUCTS and features.get(kind) and tiles_are_permitted():
        return tile_loop(dtype)
    return register_loop(dtype)


class Products:
    """A loop of products on several threads.

    Attributes:
        operations: of a call.
    """

    def __init__(self, loop: Loop, threads: int, operations: float = _LEAST) -> None:
        """Compile it.

        Args:
            operations: at least so many on each thread in a call.
        """
        self.loop = loop
        self._run = compiled(loop.text, "peak", 1)
        self._memory = [operands(loop) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads)
        self._trips = int(operations) // loop.operations
        self.operations = loop.operations * self._trips * threads

    def __call__(self) -> None:
        """Run; the calling thread works as well, for to wake another takes a while."""
        first, *others = (each.ctypes.data for each in self._memory)
        busy = [self._pool.submit(self._run, each, self._trips) for each in others]
        self._run(first, self._trips)
        for each in busy:
            each.result()

    def measure(self) -> float:
        """Billions of operations a second, the most that was seen."""
        return 1e-9 * self.operations / min(time_calls(self, _SECONDS))


def operands(loop: Loop) -> NDArray[np.uint16]:
    """On a cache line: normal numbers as bf16 for tiles, zeros for registers."""
    halves = loop.memory // 2
    numbers = np.zeros(halves + LINE, np.float32)
    if not loop.lanes:
        np.random.default_rng(0).standard_normal(dtype=np.float32, out=numbers)
    found = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    start = -found.ctypes.data % LINE // 2
    return found[start : start + halves]


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


def register_loop(dtype: str, chains: int | None = None) -> Loop:
    """Multiply and add in registers: f32 FMA, or dot products of bf16 pairs.

    Where there are none of these bf16 is multiplied as f32, as f16 is everywhere.

    Args:
        chains: sums that do not depend on each other; by default enough of them.
    """
    features = llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8
    is_dot = dtype == "bf16" and bool(features.get("avx512bf16"))
    count = chains or _CHAINS[lanes]
    of_a_trip = (4 if is_dot else 2) * lanes * count
    text = _of_registers(lanes, is_dot, count)
    return Loop(text, of_a_trip, 4 * lanes * max(count, 2), lanes, is_dot)


def tile_loop(dtype: str) -> Loop:
    """Four products of AMX tiles for four loads, as in a product of matrices."""
    name, depth = _TILE_PRODUCTS[dtype]
    multiply, load = f"@llvm.x86.{name}", "@llvm.x86.tileloadd64"
    tiles = [(4, 0, 0), (6, 1, 0), (7, 1, _TILE), (5, 0, _TILE)]
    loads = [
        f"%p{tile} = getelementptr i8, ptr %{'ba'[of == 0]}, i64 {at}\n"
        f"call void {load}(i8 {tile}, ptr %p{tile}, i64 64)"
        for tile, of, at in tiles
    ]
    products = [
        f"call void {multiply}(i8 {2 * row + column}, i8 {4 + row}, i8 {6 + column})"
        for row in (0, 1)
        for column in (0, 1)
    ]
    config = ", ".join(f"i8 {byte}" for byte in CONFIG)
    lines = [
        f"@config = constant [64 x i8] [{config}], align 64",
        "declare void @llvm.x86.ldtilecfg(ptr)",
        "declare void @llvm.x86.tilerelease()",
        f"declare void {load}(i8, ptr, i64)",
        f"declare void {multiply}(i8, i8, i8)",
        "define void @peak(ptr %from, i64 %trips) {",
        "entry:",
        "call void @llvm.x86.ldtilecfg(ptr @config)",
        "br label %loop",
        "loop:",
        "%trip = phi i64 [ 0, %entry ], [ %next, %loop ]",
        f"%pair = and i64 %trip, {_TILES // 2 - 1}",
        f"%at = mul i64 %pair, {2 * _TILE}",
        "%a = getelementptr i8, ptr %from, i64 %at",
        f"%b = getelementptr i8, ptr %a, i64 {_TILES * _TILE}",
        *loads,
        *products,
        "%next = add i64 %trip, 1",
        "%again = icmp slt i64 %next, %trips",
        "br i1 %again, label %loop, label %end",
        "end:",
        "call void @llvm.x86.tilerelease()",
        "ret void",
        "}",
    ]
    return Loop("\n".join(lines), 4 * 2 * 16 * 16 * depth, 2 * _TILES * _TILE)


def _of_registers(lanes: int, is_dot: bool, count: int) -> str:
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
