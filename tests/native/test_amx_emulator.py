"""The emulator against models of the manual's pseudocode, on code that LLVM makes."""

from __future__ import annotations

import ctypes
import threading
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from llvmlite import binding

RNG = np.random.default_rng(11)
PRODUCT = """
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.sttilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilezero(i8 immarg)
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tileloaddt164(i8 immarg, ptr, i64)
declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)
declare void @llvm.x86.{product}(i8 immarg, i8 immarg, i8 immarg)

define void @run(ptr %config, ptr %a, i64 %lda, ptr %b, i64 %ldb, ptr %c, i64 %ldc) {{
  call void @llvm.x86.ldtilecfg(ptr %config)
  call void @llvm.x86.tileloadd64(i8 0, ptr %c, i64 %ldc)
  call void @llvm.x86.tileloadd64(i8 4, ptr %a, i64 %lda)
  call void @llvm.x86.tileloaddt164(i8 6, ptr %b, i64 %ldb)
  call void @llvm.x86.{product}(i8 0, i8 4, i8 6)
  call void @llvm.x86.tilestored64(i8 0, ptr %c, i64 %ldc)
  call void @llvm.x86.tilerelease()
  ret void
}}
define void @state(ptr %config, ptr %into) {{
  call void @llvm.x86.ldtilecfg(ptr %config)
  call void @llvm.x86.tilezero(i8 7)
  call void @llvm.x86.sttilecfg(ptr %into)
  ret void
}}
define void @release() {{
  call void @llvm.x86.tilerelease()
  ret void
}}
"""
FEATURES = ",+amx-tile,+amx-bf16,+amx-int8,+amx-fp16"


@pytest.fixture
def compiled(amx):
    """A function that compiles PRODUCT for one product and gives its functions."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    engines = []

    def compile_(product):
        module = binding.parse_assembly(PRODUCT.format(product=product))
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten() + FEATURES,
        )
        code = binding.ObjectFileRef.from_data(machine.emit_object(module))
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        engine.add_object_file(code)
        engine.finalize_object()
        engines.append((engine, machine))
        return lambda name, *types: ctypes.CFUNCTYPE(None, *types)(
            engine.get_function_address(name)
        )

    return compile_


def config(tiles):
    """The 64 bytes of ldtilecfg for ``{tile: (rows, bytes of a row)}``."""
    found = np.zeros(64, np.uint8)
    found[0] = 1
    for tile, (rows, row_bytes) in tiles.items():
        found[16 + 2 * tile : 18 + 2 * tile].view(np.uint16)[0] = row_bytes
        found[48 + tile] = rows
    return found


def run(compiled, product, tiles, a, b, c):
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    types = (pointer, pointer, number, pointer, number, pointer, number)
    compiled(product)("run", *types)(
        config(tiles).ctypes.data,
        *(value for m in (a, b, c) for value in (m.ctypes.data, m.strides[0])),
    )


def rounded(value: Fraction) -> np.float32:
    """The f32 nearest to an exact number, subnormal ones flushed to zero."""
    guess = np.float32(float(value))
    near = [np.nextafter(guess, np.float32(s)) for s in (-np.inf, np.inf)]

    def distance(one: np.float32) -> tuple[Fraction, int]:
        return abs(Fraction(float(one)) - value), int(one.view(np.uint32)) & 1

    best = min((guess, *near), key=distance)
    return best if abs(best) >= np.finfo(np.float32).tiny else np.float32(0)


def exact_dot(a, b, c):
    """One number of tdpbf16ps: even and odd terms apart, each step rounded once."""
    sums = [Fraction(0), Fraction(0)]
    for k, (left, right) in enumerate(zip(a, b, strict=True)):
        product = Fraction(float(left)) * Fraction(float(right))
        sums[k % 2] = Fraction(float(rounded(sums[k % 2] + product)))
    return rounded(Fraction(float(c)) + Fraction(float(rounded(sum(sums)))))


@pytest.mark.parametrize(
    ("m", "n", "k"), [(16, 16, 32), (5, 7, 10), (1, 16, 2), (16, 1, 32)]
)
@pytest.mark.parametrize(
    ("product", "dtype"), [("tdpbf16ps", ml_dtypes.bfloat16), ("tdpfp16ps", np.float16)]
)
def test_half_products_round_as_the_manual_says(amx, compiled, product, dtype, m, n, k):
    a = RNG.standard_normal((m, k)).astype(dtype)
    b = RNG.standard_normal((k, n)).astype(dtype)
    wide = np.full((m + 1, n + 3), 9, np.float32)
    c = wide[:m, :n]
    c[...] = RNG.standard_normal((m, n))
    want = [[exact_dot(a[i], b[:, j], c[i, j]) for j in range(n)] for i in range(m)]
    pairs = np.ascontiguousarray(b.reshape(k // 2, 2, n).transpose(0, 2, 1))
    tiles = {0: (m, 4 * n), 4: (m, 2 * k), 6: (k // 2, 4 * n)}
    with amx.counting():
        run(compiled, product, tiles, a, pairs.reshape(k // 2, 2 * n), c)
    assert not amx.errors()
    assert np.array_equal(c, np.array(want, np.float32))
    assert np.all(wide[m:] == 9)
    assert np.all(wide[:, n:] == 9)
    assert amx.total() == {
        **{"ldtilecfg": 1, "tilerelease": 1, "tileloadd": 2, "tileloaddt1": 1},
        **{"tilestored": 1, product: 1},
    }


@pytest.mark.parametrize(
    ("product", "left", "right"),
    [
        ("tdpbssd", np.int8, np.int8),
        ("tdpbsud", np.int8, np.uint8),
        ("tdpbusd", np.uint8, np.int8),
        ("tdpbuud", np.uint8, np.uint8),
    ],
)
def test_byte_products(amx, compiled, product, left, right):
    m, n, k = 13, 9, 48
    a = RNG.integers(0, 256, (m, k)).astype(left)
    b = RNG.integers(0, 256, (k, n)).astype(right)
    c = RNG.integers(-(2**31), 2**31 - 1, (m, n)).astype(np.int32)
    want = (a.astype(np.int64) @ b + c).astype(np.int32)
    quads = np.ascontiguousarray(b.reshape(k // 4, 4, n).transpose(0, 2, 1))
    tiles = {0: (m, 4 * n), 4: (m, k), 6: (k // 4, 4 * n)}
    with amx.counting():
        run(compiled, product, tiles, a, quads.reshape(k // 4, 4 * n), c)
    assert not amx.errors()
    assert np.array_equal(c, want)


def test_subnormal_numbers_count_as_zero_in_bf16_and_not_in_f16(amx, compiled):
    for product, dtype, want in (
        ("tdpbf16ps", ml_dtypes.bfloat16, 0.0),
        ("tdpfp16ps", np.float16, 2 * 2.0**-24 * 1024),
    ):
        a = np.array([[1, 1]], np.uint16).view(dtype)
        b = np.array([[1024, 1024]], dtype)
        c = np.zeros((1, 1), np.float32)
        tiles = {0: (1, 4), 4: (1, 4), 6: (1, 4)}
        with amx.counting():
            run(compiled, product, tiles, a, b, c)
        assert c[0, 0] == want


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.__setitem__(0, 2), "palette"),
        (lambda c: c.__setitem__(5, 1), "reserved"),
        (lambda c: c.__setitem__(48, 17), "16 rows"),
        (lambda c: c.__setitem__(52, 0), "not both"),
        (lambda c: c.__setitem__(54, 3), "A's columns"),
        (lambda c: c.__setitem__(48, 4), "differ in rows"),
        (lambda c: c.__setitem__(0, 0), "no tile is configured"),
    ],
)
def test_wrong_use_is_found(amx, compiled, change, message):
    wrong = config({0: (8, 32), 4: (8, 16), 6: (4, 32)})
    change(wrong)
    room = np.zeros((64, 64), np.uint8)
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    types = (pointer, pointer, number, pointer, number, pointer, number)
    place = room.ctypes.data
    with amx.counting():
        compiled("tdpbf16ps")("run", *types)(
            wrong.ctypes.data, *(place, 64, place, 64, place, 64)
        )
    assert any(message in found for found in amx.errors())


def test_each_thread_has_tiles_of_its_own(amx, compiled):
    functions = compiled("tdpbf16ps")
    given, found = config({7: (3, 12)}), [np.ones(64, np.uint8) for _ in range(2)]
    state = functions("state", ctypes.c_void_p, ctypes.c_void_p)
    release = functions("release")
    before = amx.configured_threads()

    def work(into):
        state(given.ctypes.data, into.ctypes.data)

    with amx.counting():
        threads = [threading.Thread(target=work, args=(into,)) for into in found]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert amx.configured_threads() == before + 2
        work(found[0])
        release()
    assert all(np.array_equal(into, given) for into in found)
    assert [counts["ldtilecfg"] for counts in amx.threads()] == [1, 1, 1]
    assert amx.configured_threads() == before + 2


def test_code_traps_on_every_processor(amx, compiled):
    """Not one C4 of a tile instruction is left, so a processor with AMX counts, too."""
    functions = compiled("tdpbssd")
    given, found = config({7: (3, 12)}), np.ones(64, np.uint8)
    with amx.counting():
        functions("state", ctypes.c_void_p, ctypes.c_void_p)(
            given.ctypes.data, found.ctypes.data
        )
    assert amx.total() == {"ldtilecfg": 1, "tilezero": 1, "sttilecfg": 1}
    run_ = functions("run")
    code = (ctypes.c_uint8 * 64).from_address(ctypes.cast(run_, ctypes.c_void_p).value)
    assert b"\xc4\xe2\x78\x49" not in bytes(code)
    assert b"\x06\xe2\x78\x49" in bytes(code)
