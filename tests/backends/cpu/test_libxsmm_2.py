"""libxsmm 2 behind our shim: its numbers, its AMX, and a library that does wrong.

Where no libxsmm 2 is to be had a stand-in with its interface is built
(tests/native/libxsmm2).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_library_calls import gemm

from tests.native import libxsmm_2
from xetl.errors import LibraryWarning
from xetl.settings import config
from xetl_cpu import native
from xetl_cpu.doctor import examine
from xetl_cpu.library import native_build, serve
from xetl_cpu.library.native_build import NativeBuildError, shim_with
from xetl_cpu.library.serve import UnusableLibraryError, find_library

BF16_TYPE = ml_dtypes.bfloat16
F32, BF16, BF16_F32 = 1, 2, 258
BETA_0, NO_RESET, NO_SETUP, VNNI_B = 4, 64, 128, 2048
ROOT = Path(__file__).parents[3]
TREES = ("", "backends/reference", "backends/cpu", "tests/backends/cpu")
RNG = np.random.default_rng(2)


def shim_or_skip(root: Path | str) -> Path:
    built = root if isinstance(root, str) else libxsmm_2.shim_with(root)
    if isinstance(built, str):
        pytest.skip(f"the shim cannot be built: {built}")
    return built


@pytest.fixture(params=["stand-in", *(["real"] if libxsmm_2.real() else [])])
def path(request: pytest.FixtureRequest) -> Path:
    """Of the shim over libxsmm 2."""
    if request.param == "stand-in":
        return shim_or_skip(libxsmm_2.stand_in())
    return shim_or_skip(libxsmm_2.real())


def test_the_tests_below_ran_with_a_real_libxsmm_2() -> None:
    if libxsmm_2.real() is None:
        pytest.skip("no libxsmm 2: LIBXSMM_ROOT names none; the stand-in was used")
    shim_or_skip(libxsmm_2.real())


@pytest.fixture
def stand_in() -> Path:
    return shim_or_skip(libxsmm_2.stand_in())


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    config.cache = False
    yield
    for name in ("cache", "xsmm", "target"):
        delattr(config, name)


# The shim ---------------------------------------------------------------------------


def dispatch(
    path: Path, what: str, dtype: int, sizes: tuple[int, ...], flags: int
) -> int:
    m, n, k, *batch = sizes
    function = getattr(ctypes.CDLL(str(path)), f"xsmm_{what}_dispatch")
    function.restype = ctypes.c_int64
    numbers = (dtype, m, n, k, k, n, n, *batch, flags)
    return function(*map(ctypes.c_int64, numbers))


def invoke(path: Path, dtype: int, kernel: int, arrays: list[Any], batch: int) -> None:
    words: list[Any] = [ctypes.c_int64(dtype), ctypes.c_int64(kernel)]
    for array in arrays:
        words += [ctypes.c_void_p(array.ctypes.data), ctypes.c_int64(0)]
    ctypes.CDLL(str(path)).xsmm_brgemm_invoke(*words, ctypes.c_int64(batch))


@pytest.mark.parametrize("flags", [0, BETA_0])
@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 32), (8, 48, 16), (13, 32, 20)])
def test_f32(path: Path, m: int, n: int, k: int, flags: int) -> None:
    a = RNG.integers(-4, 5, (5, m, k)).astype(np.float32)
    b = RNG.integers(-4, 5, (5, k, n)).astype(np.float32)
    c = np.full((m, n), 3, np.float32)
    wanted = (a @ b).sum(0) + (0 if flags else c)
    kernel = dispatch(path, "brgemm", F32, (m, n, k, m * k, k * n), flags)
    assert kernel
    invoke(path, F32, kernel, [a, b, c], 5)
    assert np.array_equal(c, wanted)


@pytest.mark.parametrize("dtype", [BF16, BF16_F32])
@pytest.mark.parametrize("flags", [0, BETA_0, NO_RESET | NO_SETUP])
def test_bf16_in_pairs(path: Path, dtype: int, flags: int) -> None:
    a = RNG.integers(-4, 5, (3, 32, 32)).astype(BF16_TYPE)
    b = RNG.integers(-4, 5, (3, 32, 32)).astype(BF16_TYPE)
    pairs = b.reshape(3, 16, 2, 32).transpose(0, 1, 3, 2).copy()
    c = np.full((32, 32), 3, BF16_TYPE if dtype == BF16 else np.float32)
    start = 0 if flags & BETA_0 else 3
    wanted = (a.astype("f4") @ b.astype("f4")).sum(0) + start
    sizes = (32, 32, 32, 1024, 1024)
    kernel = dispatch(path, "brgemm", dtype, sizes, VNNI_B | flags)
    assert kernel
    invoke(path, dtype, kernel, [a, pairs, c], 3)
    assert np.array_equal(c, wanted.astype(c.dtype))


@pytest.mark.parametrize(
    ("what", "dtype", "flags"),
    [
        ("brgemm", F32, VNNI_B),
        ("brgemm", BF16, 0),
        ("brgemm", 3, 0),
        ("brgemm", BF16_F32, VNNI_B | NO_RESET),
        ("brgemm", BF16_F32, VNNI_B | NO_SETUP),
        ("brgemm", F32, 1),
        ("intel_amx_tile_config", BF16_F32, VNNI_B),
        ("intel_amx_tile_config", BF16_F32, VNNI_B | NO_RESET | NO_SETUP),
    ],
)
def test_what_it_cannot_do_is_refused(
    path: Path, what: str, dtype: int, flags: int
) -> None:
    assert dispatch(path, what, dtype, (32, 32, 32, 1024, 1024), flags) == 0


def test_strides_beyond_its_integers_are_refused(path: Path) -> None:
    large = 1 << 29
    assert dispatch(path, "brgemm", F32, (32, 32, 32, 1024, large - 1), 0)
    assert dispatch(path, "brgemm", F32, (32, 32, 32, 1024, large), 0) == 0
    assert dispatch(path, "brgemm", F32, (32, 32, 32, large, 1024), 0) == 0


# Kernels that call it ---------------------------------------------------------------


def operands(dtype: Any = np.float32) -> list[Any]:
    a, b = (RNG.integers(-4, 5, shape) for shape in ((70, 75), (75, 45)))
    return [a.astype(dtype), b.astype(dtype), np.zeros((70, 45), np.float32)]


def same_product(a: Any, b: Any, c: Any) -> bool:
    return np.array_equal(c, a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize("dtype", [np.float32, BF16_TYPE])
def test_kernels(path: Path, dtype: Any) -> None:
    config.xsmm = str(path)
    a, b, c = operands(dtype)
    gemm[2, 1](a, b, c)
    assert same_product(a, b, c)
    assert "xsmm_brgemm_invoke" in gemm.ir("llvm", a, b, c)


def run(script: str, **variables: str) -> str:
    """In a process of its own: libxsmm reads its variables once."""
    paths = os.pathsep.join([*(str(ROOT / tree) for tree in TREES), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": paths, "XETL_CACHE": "0", **variables},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


AMX = """
import ml_dtypes, numpy as np
from test_library_calls import gemm
from tests.native.amx_emulator import emulator
from tests.native.amx_traps import trapping
amx = emulator()
rng = np.random.default_rng(0)
a, b = (rng.integers(-4, 5, (256, 256)).astype(ml_dtypes.bfloat16) for _ in range(2))
c = np.zeros((256, 256), np.float32)
with trapping(), amx.counting():
    gemm[4, 4](a, b, c)  # tries the library out, too
with amx.counting():
    gemm[4, 4](a, b, c)
assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))
assert amx.errors() == [], amx.errors()
assert amx.configured_threads() == 0
for each in amx.threads():
    assert each["tilezero"] > 2
print({(each["ldtilecfg"], each["sttilecfg"]) for each in amx.threads()})
"""


@pytest.mark.usefixtures("amx")
def test_tiles_are_set_up_apart_from_products(path: Path) -> None:
    """Each thread once, however many programs: a save, a load, and what was is loaded.

    A product that did so itself would give two loads and a save for each call.
    """
    variables = {"LIBXSMM_TARGET": "spr", "XETL_TARGET": "amx", "XETL_XSMM": str(path)}
    assert run(AMX, **variables) == "{(2, 1)}\n"


# Libraries that do wrong ------------------------------------------------------------


CHECKED = """
import warnings
from test_libxsmm_2 import gemm, operands, same_product
a, b, c = operands()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    gemm[2, 1](a, b, c)
assert same_product(a, b, c)
print(*(f"{one.category.__name__}: {one.message}" for one in caught))
"""


def test_no_kernel_at_all(stand_in: Path) -> None:
    said = run(CHECKED, XETL_XSMM=str(stand_in), XETL_STAND_IN="null")
    assert said.startswith("LibraryWarning: ")
    assert "has no kernel for f32 [" in said


def test_a_library_that_crashes(stand_in: Path) -> None:
    said = run(CHECKED, XETL_XSMM=str(stand_in), XETL_STAND_IN="crash")
    assert said.startswith("LibraryWarning: ")
    assert "xetl's own code does: it crashes (SIG" in said


def test_amx_code_where_there_is_no_amx(stand_in: Path) -> None:
    """LIBXSMM_TARGET may name any processor; ours then computes."""
    if "amx_tile" in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has AMX")
    said = run(CHECKED, XETL_XSMM=str(stand_in), LIBXSMM_TARGET="spr")
    assert "it crashes (SIGILL)" in said


def test_tiles_that_nobody_would_set_up(stand_in: Path) -> None:
    script = f"""
from test_libxsmm_2 import *
path = Path({str(stand_in)!r})
flags = VNNI_B | NO_RESET | NO_SETUP
print(dispatch(path, "brgemm", BF16_F32, (32, 32, 32, 1024, 1024), flags))
"""
    assert run(script, XETL_STAND_IN="tiles") == "0\n"


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    file = tmp_path / "text.so"
    file.write_text("not a library")
    config.xsmm = str(file)
    a, b, c = operands()
    with pytest.warns(LibraryWarning, match="it cannot be loaded"):
        gemm[2, 1](a, b, c)
    assert same_product(a, b, c)


@pytest.mark.parametrize(
    "given", ["", pytest.param("lib/libxsmm.so", marks=pytest.mark.slow)]
)
def test_a_libxsmm_is_given_by_its_folder_or_file(given: str, tmp_path: Path) -> None:
    """The shim is built when it is first asked for, and kept."""
    root = libxsmm_2.stand_in()
    if isinstance(root, str):
        pytest.skip(root)
    variables = {"XETL_XSMM": str(root / given), "XETL_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        assert run(CHECKED, XETL_CACHE="1", **variables) == "\n"
    (kept,) = tmp_path.glob("xsmm-*")
    assert [file.name for file in kept.iterdir()] == ["libxetl_xsmm.so"]


def test_a_folder_without_a_libxsmm(tmp_path: Path) -> None:
    with pytest.raises(UnusableLibraryError, match="is no folder of a libxsmm"):
        find_library(str(tmp_path))


def test_without_cmake(monkeypatch: pytest.MonkeyPatch) -> None:
    root = libxsmm_2.stand_in()
    if isinstance(root, str):
        pytest.skip(root)
    config.cache = False
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(NativeBuildError, match="pip install cmake"):
        shim_with(root)


# Where it is ------------------------------------------------------------------------


@pytest.fixture(params=["include", "include/libxsmm"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A libxsmm 2 with its headers as one or the other version installs them."""
    made = libxsmm_2.stand_in()
    if isinstance(made, str):
        pytest.skip(f"the stand-in cannot be built: {made}")
    shutil.copytree(made, tmp_path / "root", symlinks=True)
    headers = tmp_path / "root" / request.param
    headers.mkdir(exist_ok=True)
    if headers.name == "libxsmm":
        (tmp_path / "root" / "include" / "libxsmm.h").rename(headers / "libxsmm.h")
    return tmp_path / "root"


def test_headers_in_a_folder_of_their_own(root: Path) -> None:
    assert hasattr(ctypes.CDLL(str(shim_with(root))), "xsmm_brgemm_dispatch")


def test_one_that_was_installed_after_xetl(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "XSMM_SHIM", tmp_path / "not" / "there.so")
    monkeypatch.setattr(native, "xsmm_shim", lambda: None)
    monkeypatch.setattr(native_build, "_SYSTEM", [tmp_path / "nothing", root])
    monkeypatch.delenv("LIBXSMM_ROOT", raising=False)
    said = [each.text for each in examine() if each.topic == "native shim"]
    assert f"a libxsmm is in {root}" in said[0]
    assert "xsmm_brgemm_dispatch" in serve._open("libxsmm").addresses
    monkeypatch.setenv("LIBXSMM_ROOT", str(tmp_path / "nothing"))
    with pytest.raises(UnusableLibraryError):
        serve._open("libxsmm")
