"""Functions for instructions of x86 above AVX2, and LLVM IR that calls them.

Semantics: Intel SDM, volumes 1 (chapter 18: tiles) and 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from math import inf, ldexp
from typing import Any

import numpy as np
from numba import carray, cfunc, njit, types

_MEMORY = np.zeros((16381, 9, 16, 64), np.uint8)
"""Tiles of threads, each at a place that its thread pointer says.

A prime number of places: hardly ever do two threads have the same one. What nobody uses
takes no memory.
"""

_DECLARED = re.compile(r'^declare (.+?) @"llvm\.x86\.([\w.]+)"\((.*)\)', re.M)
_ROUNDED = re.compile(r"fptrunc <(\d+) x float> (\S+) to <\d+ x bfloat>")
_ROUNDED_ALONE = re.compile(r"fptrunc float (\S+) to bfloat")
_ALONE = """
define internal bfloat @"software.round"(float %x) alwaysinline {
  %v = insertelement <8 x float> zeroinitializer, float %x, i32 0
  %r = fptrunc <8 x float> %v to <8 x bfloat>
  %b = extractelement <8 x i16> %r, i32 0
  %f = bitcast i16 %b to bfloat
  ret bfloat %f
}
"""
_TYPE = r"<[^>]*>|\bptr\b|\bi\d+\b"
_IS_HERE = re.compile("avx2?[.]|sse|fma|bmi")
_THREAD = "call ptr @llvm.thread.pointer.p0()"


def by_software(text: str) -> str:
    """LLVM IR without what AVX2 has no instruction for."""
    made: list[str] = []
    text, count = _ROUNDED_ALONE.subn(r'call bfloat @"software.round"(float \1)', text)
    text += _ALONE * min(count, 1)
    for lanes in {int(lanes) for lanes, _ in _ROUNDED.findall(text)}:
        types_ = f"<{lanes} x i16>", f"<{lanes} x float>"
        made.append(_definition(f"round.{lanes}", types_[0], [types_[1]]))
    call = r'call <\1 x i16> @"software.round.\1"(<\1 x float> \2)'
    # Without instructions for it LLVM has no vectors of bf16.
    text = _ROUNDED.sub(call, text).replace(" x bfloat>", " x i16>")
    for result, name, parameters in _DECLARED.findall(text):
        if not _IS_HERE.match(name):
            inputs = re.findall(_TYPE, parameters)
            made.append(_definition(name, result, inputs))
            text = re.sub(rf'^declare .*"llvm\.x86\.{name}".*$', "", text, flags=re.M)
            text = text.replace(f'"llvm.x86.{name}"', f'"software.{name}"')
    if made:
        made.append(_THREAD.replace("call", "declare"))
    return "\n".join([text, *made])


def _definition(name: str, result: str, inputs: list[str]) -> str:
    """A function that hands its vectors on in memory; or, of tiles, its arguments.

    What else is beside vectors (masks of all lanes, ways to round) says nothing new.
    """
    given = [f"{type_} %x{i}" for i, type_ in enumerate(inputs)]
    lines = [f'define internal {result} @"software.{name}"({", ".join(given)}) {{']
    vectors = [(f"x{i}", type_) for i, type_ in enumerate(inputs) if type_[0] == "<"]
    if result == "void":
        lines += [
            f"%thread = {_THREAD}",
            "%word = ptrtoint ptr %thread to i64",
            "%page = lshr i64 %word, 12",
            f"%number = urem i64 %page, {len(_MEMORY)}",
            f"%offset = mul i64 %number, {_MEMORY[0].nbytes}",
            f"%at = add i64 %offset, {_MEMORY.ctypes.data}",
            "%tiles = inttoptr i64 %at to ptr",
        ]
        passed = ["ptr %tiles", *given]
        types_ = ["ptr", *inputs]
    else:
        lines += [f"%out = alloca {result}, align 64"]
        for value, type_ in vectors:
            lines += [f"%{value}.p = alloca {type_}, align 64"]
            lines += [f"store {type_} %{value}, ptr %{value}.p, align 64"]
        passed = ["ptr %out", *(f"ptr %{value}.p" for value, _ in vectors)]
        types_ = [result, *(type_ for _, type_ in vectors)]
    address = _compiled(name, tuple(types_))
    lines += [f"call void inttoptr (i64 {address} to ptr)({', '.join(passed)})"]
    if result == "void":
        lines += ["ret void", "}"]
    else:
        lines += [f"%r = load {result}, ptr %out, align 64", f"ret {result} %r", "}"]
    return "\n".join(lines)


_ELEMENTS = {
    "float": types.float32,
    "double": types.float64,
    "i8": types.uint8,
    "i16": types.uint16,
    "i32": types.int32,
    "i64": types.int64,
    "ptr": types.CPointer(types.uint8),
}


@cache
def _compiled(name: str, given: tuple[str, ...]) -> int:
    """The address of a function of these."""
    numbers: list[Any] = []
    for type_ in given:
        if type_[0] == "<":
            numbers.append(types.CPointer(_ELEMENTS[type_[:-1].split(" x ")[1]]))
        else:
            numbers.append(_ELEMENTS[type_])
    make = next(make for begin, make in _FUNCTIONS.items() if name.startswith(begin))
    lanes = int(given[0][1:].split()[0]) if given[0][0] == "<" else 0
    compiled = cfunc(types.void(*numbers))(make(lanes) if lanes else make)
    _KEPT.append(compiled)
    return compiled.address


_KEPT: list[Any] = []
"""What machine code calls."""


# Vectors ------------------------------------------------------------------------------


@njit
def _widened(bits: Any) -> Any:
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@njit
def _added(total: Any, a: Any, b: Any) -> Any:
    """One multiply-add of bf16: their product is exact in f64."""
    product = np.float64(_widened(a)) * np.float64(_widened(b))
    return np.float32(product + np.float64(total))


def _dot_bf16(n: int) -> Callable[..., None]:
    def run(out: Any, c: Any, a: Any, b: Any) -> None:
        for i in range(n):
            second = _added(c[i], a[2 * i + 1], b[2 * i + 1])
            out[i] = _added(second, a[2 * i], b[2 * i])

    return run


def _dot_bytes(n: int) -> Callable[..., None]:
    def run(out: Any, c: Any, unsigned: Any, signed: Any) -> None:
        for i in range(n):
            total = np.int64(c[i])
            for j in range(4 * i, 4 * i + 4):
                total += np.int64(unsigned[j]) * np.int64(np.int8(signed[j]))
            out[i] = np.int32(total)

    return run


def _dot_words(n: int) -> Callable[..., None]:
    def run(out: Any, a: Any, b: Any) -> None:
        for i in range(n):
            total = np.int64(0)
            for j in range(2 * i, 2 * i + 2):
                total += np.int64(np.int16(a[j])) * np.int64(np.int16(b[j]))
            out[i] = np.int32(total)

    return run


def _lookup(n: int) -> Callable[..., None]:
    def run(out: Any, table: Any, index: Any) -> None:
        for i in range(n):
            out[i] = table[index[i] & (n - 1)]

    return run


def _fraction(n: int) -> Callable[..., None]:
    """``vreduceps`` as our code asks for it: less the floor."""

    def run(out: Any, x: Any, _others: Any) -> None:
        for i in range(n):
            out[i] = 0 if abs(x[i]) == inf else x[i] - np.floor(x[i])

    return run


def _scale(n: int) -> Callable[..., None]:
    """By a power of two, whose exponent is rounded down; the result is rounded once."""

    def run(out: Any, x: Any, by: Any, _others: Any) -> None:
        for i in range(n):
            power = np.floor(np.float64(by[i]))
            if np.isnan(power):
                out[i] = power
            else:
                out[i] = ldexp(np.float64(x[i]), int(min(max(power, -4000), 4000)))

    return run


def _round(n: int) -> Callable[..., None]:
    """f32 to bf16, ties to even; of a NaN the highest bits, and it stays quiet."""

    def run(out: Any, x: Any) -> None:
        for i in range(n):
            bits = np.float32(x[i]).view(np.uint32)
            if np.isnan(x[i]):
                out[i] = (bits >> np.uint32(16)) | np.uint32(64)
            else:
                odd = (bits >> np.uint32(16)) & np.uint32(1)
                out[i] = (bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)

    return run


# Tiles --------------------------------------------------------------------------------

_CONFIGURED = 8
"""The place behind the eight tiles; nothing else is kept of a configuration."""


@njit
def _tiles(thread: Any) -> Any:
    return carray(thread, (_CONFIGURED + 1, 16, 64), np.uint8)


def _configure(thread: Any, _config: Any) -> None:
    _tiles(thread)[:] = 0
    _tiles(thread)[_CONFIGURED] = 1


def _release(thread: Any) -> None:
    """What is stored without a configuration is no number."""
    _tiles(thread)[:] = 255


def _clear(thread: Any, tile: Any) -> None:
    tiles = _tiles(thread)
    tiles[tile] = 0 if tiles[_CONFIGURED, 0, 0] == 1 else 255


def _load(thread: Any, tile: Any, memory: Any, stride: Any) -> None:
    for row in range(16):
        for i in range(64):
            _tiles(thread)[tile, row, i] = memory[row * stride + i]


def _store(thread: Any, tile: Any, memory: Any, stride: Any) -> None:
    for row in range(16):
        for i in range(64):
            memory[row * stride + i] = _tiles(thread)[tile, row, i]


def _multiply_bf16(thread: Any, c: Any, a: Any, b: Any) -> None:
    tiles = _tiles(thread)
    sums = tiles[c].view(np.float32)
    left, right = tiles[a].view(np.uint16), tiles[b].view(np.uint16)
    for row in range(16):
        for pair in range(16):
            for i in range(16):
                for j in range(2):
                    one, other = left[row, 2 * pair + j], right[pair, 2 * i + j]
                    sums[row, i] = _added(sums[row, i], one, other)


def _multiply_bytes(of_a: Any, of_b: Any) -> Callable[..., None]:
    def run(thread: Any, c: Any, a: Any, b: Any) -> None:
        tiles = _tiles(thread)
        sums = tiles[c].view(np.int32)
        left, right = tiles[a].view(of_a), tiles[b].view(of_b)
        for row in range(16):
            for four in range(16):
                for i in range(16):
                    for j in range(4):
                        one = np.int64(left[row, 4 * four + j])
                        sums[row, i] += one * np.int64(right[four, 4 * i + j])

    return run


_FUNCTIONS: dict[str, Any] = {
    "avx512bf16.dpbf16ps": _dot_bf16,
    "avx512.vpdpbusd": _dot_bytes,
    "avx512.pmaddw.d": _dot_words,
    "avx512.permvar.sf": _lookup,
    "avx512.mask.reduce": _fraction,
    "avx512.mask.scalef": _scale,
    "round": _round,
    "ldtilecfg": _configure,
    "tilerelease": _release,
    "tilezero": _clear,
    "tileload": _load,
    "tilestored": _store,
    "tdpbf16ps": _multiply_bf16,
    "tdpbssd": _multiply_bytes(np.int8, np.int8),
    "tdpbsud": _multiply_bytes(np.int8, np.uint8),
    "tdpbusd": _multiply_bytes(np.uint8, np.int8),
    "tdpbuud": _multiply_bytes(np.uint8, np.uint8),
}
"""By how names begin: of vectors what makes a function for so many lanes."""
