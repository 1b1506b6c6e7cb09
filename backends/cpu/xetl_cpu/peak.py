"""The peak rates of this machine: products in registers or tiles, and memory copies.

Products on tiles read random numbers: silicon is a seventh faster on zeros, which no
real matrix has.  Sources: Intel SDM, volume 1, chapter 18; LLVM's intrinsics.
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
"""Independent sums, so that no multiply waits for one, by the f32 of a register: they
and a factor stay in 16 registers, or in 32."""

_LEAST = 1.25e9
"""Operations of a thread in a call; they take about 5 ms."""

_COPIED = 1 << 26
"""Bytes that each thread copies: more than its part of any cache."""

_SECONDS = 0.3

_TILE, _TILES = 1024, 16
"""Bytes of a tile, and how many tiles of A and of B a loop reads: they stay in L1."""

_TILE_PRODUCTS = {"bf16": ("tdpbf16ps", 32), "i8": ("tdpbssd", 64)}
"""For each type of factors: the instruction, and elements of a tile's row of A."""


@dataclass(frozen=True)
class Loop:
    """LLVM IR of a function ``peak``, which takes memory and a number of iterations.

    Attributes:
        text: the LLVM IR.
        operations: operations of an iteration; a multiply-add is two.
        memory: bytes that it reads, or stores its sums to.
        lanes: f32 of a register; 0 for tiles.
        is_dot: whether a multiply-add is of pairs.
    """

    text: str
    operations: int
    memory: int
    lanes: int = 0
    is_dot: bool = False


@cache
def measure_peak(dtype: str = "f32") -> tuple[float, float]:
    """Return 10^9 operations and bytes per second, on all usable processors.

    The measurement takes a second.
    """
    threads = len(os.sched_getaffinity(0))
    products = Products(fastest_loop(dtype), threads)
    return products.measure(), _bandwidth(threads)


def fastest_loop(dtype: str) -> Loop:
    """Return a loop of tiles if this machine has them, else of registers."""
    features = llvm.get_host_cpu_features()
    kind = "amx-int8" if dtype == "i8" else "amx-bf16"
    if dtype in _TILE_PRODUCTS and features.get(kind) and tiles_are_permitted():
        return tile_loop(dtype)
    return register_loop(dtype)


class Products:
    """A loop of products on several threads.

    Attributes:
        operations: the operations of a call.
    """

    def __init__(self, loop: Loop, threads: int, operations: float = _LEAST) -> None:
        """Compile it.

        Args:
            operations: the operations of each thread in a call, at least.
        """
        self.loop = loop
        self._run = compiled(loop.text, "peak", 1)
        self._memory = [operands(loop) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads)
        self._trips = int(operations) // loop.operations
        self.operations = loop.operations * self._trips * threads

    def __call__(self) -> None:
        """Run it, on the calling thread as well: waking another thread takes long."""
        first, *others = (each.ctypes.data for each in self._memory)
        busy = [self._pool.submit(self._run, each, self._trips) for each in others]
        self._run(first, self._trips)
        for each in busy:
            each.result()

    def measure(self) -> float:
        """Return the highest measured rate, in billions of operations per second."""
        return 1e-9 * self.operations / min(time_calls(self, _SECONDS))


def operands(loop: Loop) -> NDArray[np.uint16]:
    """Return aligned memory: random normal numbers as bf16 for tiles, else zeros."""
    halves = loop.memory // 2
    numbers = np.zeros(halves + LINE, np.float32)
    if not loop.lanes:
        np.random.default_rng(0).standard_normal(dtype=np.float32, out=numbers)
    found = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    start = -found.ctypes.data % LINE // 2
    return found[start : start + halves]


def compiled(text: str, name: str, numbers: int) -> Callable[..., None]:
    """Compile LLVM IR for this processor: a function of an address and some numbers."""
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
    """Return the billions of bytes per second of a copy on all threads."""
    pairs = [(np.ones(_COPIED // 8), np.zeros(_COPIED // 8)) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            for done in [pool.submit(np.copyto, to, of) for of, to in pairs]:
                done.result()

        return 2e-9 * _COPIED * threads / min(time_calls(copy, _SECONDS))


def register_loop(dtype: str, chains: int | None = None) -> Loop:
    """Return a loop of f32 FMAs in registers, or of dot products of bf16 pairs.

    Without such dot products, bf16 is multiplied as f32, as f16 always is.

    Args:
        chains: the number of independent sums; by default enough of them.
    """
    features = llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8
    is_dot = dtype == "bf16" and bool(features.get("avx512bf16"))
    count = chains or _CHAINS[lanes]
    of_a_trip = (4 if is_dot else 2) * lanes * count
    text = _of_registers(lanes, is_dot, count)
    return Loop(text, of_a_trip, 4 * lanes * max(count, 2), lanes, is_dot)


def tile_loop(dtype: str) -> Loop:
    """Return a loop of four products of AMX tiles for four loads, as in a GEMM."""
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
    """Return LLVM IR: multiply and add to vectors ``trips`` times, then store them."""
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
    # The compiler does not know this factor: it would fold products of constants.
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
