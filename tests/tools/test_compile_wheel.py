"""`xetl compile --wheel`: kernels for Python without xetl, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.tools.kernels_for_commands import gemm, scale
from xetl.tools.shipping.wheel_files import grid_text
from xetl_cpu import shipped

FILE = str(Path(__file__).parent / "kernels_for_commands.py")
GEMM = "f32[M,K] f32[K,N] f32[M,N]"
SCALE = "f32[R,16] f64 i64 i1 f32[R,16]"

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from time import perf_counter
start = perf_counter()
import fast
A = np.arange(70 * 100, dtype="f4").reshape(70, 100) % 9 - 4
B = np.arange(100 * 45, dtype="f4").reshape(100, 45) % 7 - 3
C = np.full((70, 45), 7, "f4")
fast.gemm(A, B, C)
seconds = perf_counter() - start
assert (C == A @ B).all()
x = np.arange(48, dtype="f4").reshape(3, 16)
y = np.zeros_like(x)
fast.scale[3](x, 2.5, n=4, flag=True, Y=y)
assert (y == x * 2.5 + 5).all()
for _ in range(50):
    fast.gemm[(3, 2)](A, B, C)
assert (C == A @ B).all()
heavy = {"xdsl", "llvmlite", "numba", "xetl", "xetl_cpu"} & set(sys.modules)
print(heavy or "light", fast.gemm.target, seconds)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture
def wheel(xetl: Any, folder: Path) -> Path:
    """A wheel of two kernels; made once."""
    if not list(folder.glob("*.whl")):
        also = ("--also", f"{FILE}:scale '{SCALE}'")
        words = ("--wheel", "--name", "fast", *also, "-o", str(folder))
        result = xetl("compile", f"{FILE}:gemm", GEMM, *words)
        assert result.exit_code == 0, result.output
    (found,) = folder.glob("*.whl")
    return found


def test_it_is_installed_and_runs_without_xetl(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    options = ("--quiet", "--no-deps", "--no-index", "--target", str(site))
    pip = [sys.executable, "-m", "pip", "install", *options, str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-I", "-c", PROGRAM, str(site)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    light, target, seconds = done.stdout.split()
    assert light == "light"
    assert target in ("avx2", "avx512", "avx512_bf16", "amx")
    assert float(seconds) < 0.5  # alone on a machine: 0.01, import and all


def test_what_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        facts = json.loads(archive.read("fast/kernels.json"))
        assert "fast-0.1.0.dist-info/RECORD" in archive.namelist()
        assert all(str(Path(FILE).parent).encode() not in archive.read(name)
                   for name in archive.namelist())  # fmt: skip
    assert facts["gemm"]["grid"].startswith("lambda m: (cdiv(m.C.shape[0], m.BM)")
    assert [each["target"] for each in facts["gemm"]["variants"]] == [
        "avx2",
        "avx512",
        "avx512_bf16",
        "amx",
    ]


# A launch ---------------------------------------------------------------------------


@pytest.fixture
def product(wheel: Path, tmp_path: Path) -> shipped.Kernel:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    facts = json.loads((tmp_path / "fast" / "kernels.json").read_text())
    return shipped.Kernel(facts["gemm"], tmp_path / "fast")


def x(*shape: int, dtype: str = "f4") -> Any:
    return np.ones(shape, dtype)


@pytest.mark.parametrize(
    ("args", "error", "answer"),
    [
        ((x(4, 4), x(4, 4)), TypeError, "takes A, B, C, each once"),
        ((x(4, 4), x(4, 4), x(4, 4, dtype="f8")), TypeError, "`C` must be an array of"),
        ((x(4, 4), x(4, 4), x(4)), ValueError, "2 dimensions, not 1"),
        ((x(4, 4).T, x(4, 4), x(4, 4)), ValueError, "`A` must have stride 1"),
        ((x(4, 4), x(4, 4, dtype=">f4"), x(4, 4)), TypeError, "`B` .* order of bytes"),
    ],
)
def test_wrong_arguments(
    product: shipped.Kernel, args: tuple[Any, ...], error: type[Exception], answer: str
) -> None:
    with pytest.raises(error, match=answer):
        product(*args)


def test_outputs_are_their_own(product: shipped.Kernel) -> None:
    a, c = x(4, 4), x(4, 4)
    with pytest.raises(ValueError, match="`A` and `C` share memory"):
        product(a, x(4, 4), a)
    for strides in ((0, 4), (4, 4), (-8, 4)):
        folded = np.lib.stride_tricks.as_strided(x(64)[32:], (4, 4), strides)
        with pytest.raises(ValueError, match="`C` must have a place of its own for"):
            product(a, x(4, 4), folded)
    product(a, x(4, 4), x(8, 9)[6::-2, :4])
    product(a[:0], x(4, 4), x(0, 4))
    c.flags.writeable = False
    with pytest.raises(ValueError, match="`C` must have memory that may be written"):
        product(a, x(4, 4), c)


@pytest.mark.parametrize("grid", [(1, 1, 1, 1), (), "x", 1.5, (1, "x"), None, (1, -1)])
def test_wrong_grids(product: shipped.Kernel, grid: Any) -> None:
    with pytest.raises(ValueError, match="it must be one to three sizes"):
        product[grid](x(4, 4), x(4, 4), x(4, 4))


def test_a_grid_that_would_never_end(product: shipped.Kernel) -> None:
    with pytest.raises(ValueError, match="a size is at most 2147483647"):
        product[1, 1 << 31](x(4, 4), x(4, 4), x(4, 4))


@pytest.mark.parametrize(
    ("name", "value"),
    [("double", "x"), ("double", 1j), ("n", "x"), ("n", 1.5), ("n", 1 << 63)],
)
def test_wrong_numbers(wheel: Path, tmp_path: Path, name: str, value: object) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    facts = json.loads((tmp_path / "fast" / "kernels.json").read_text())
    scaled = shipped.Kernel(facts["scale"], tmp_path / "fast")
    names = [each["name"] for each in facts["scale"]["arguments"]]
    given = dict(zip(names, (x(3, 16), 2.5, 4, True, x(3, 16)))) | {name: value}
    with pytest.raises(TypeError, match=f"`{name}` is .*: it must be"):
        scaled[3](**given)


def test_a_processor_that_is_too_old(
    product: shipped.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "_processor", lambda: frozenset({"avx", "fma"}))
    with pytest.raises(
        ImportError, match="does not run on this processor, which lacks"
    ):
        product(x(4, 4), x(4, 4), x(4, 4))


FIXED = """
func.func @moved(%a: memref<8x16xf32>, %b: memref<?x?xf32, strided<[?, 1]>>) {
  %t = xetile.init_tile %a[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
  %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  %p, %o, %s:2, %d:2 = memref.extract_strided_metadata %b
    : memref<?x?xf32, strided<[?, 1]>>
    -> memref<f32>, index, index, index, index, index
  %u = xetile.init_tile %b[0, 0], [%s#0, %s#1], [%d#0, 1]
    : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<8x16xf32>
  xetile.store_tile %v, %u : vector<8x16xf32>, !xetile.tile<8x16xf32>
  return
}
"""


def test_what_the_types_of_a_text_say_is_checked(xetl: Any, tmp_path: Path) -> None:
    (tmp_path / "moved.mlir").write_text(FIXED)
    words = ("--wheel", "--target", "avx2", "-o", str(tmp_path))
    assert xetl("compile", str(tmp_path / "moved.mlir"), *words).exit_code == 0
    (made,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path)
    facts = json.loads((tmp_path / "moved" / "kernels.json").read_text())["moved"]
    moved = shipped.Kernel(facts, tmp_path / "moved")
    a, b = np.arange(128, dtype="f4").reshape(8, 16), x(9, 20)
    moved[1](a, b[:, 1:])
    assert (b[:8, 1:17] == a).all()
    assert b[8:].all()
    for wrong, out, why in (
        (a[:7], b, "`a` must have size 8 in dimension 0, not 7"),
        (x(8, 32)[:, :16], b, "`a` must have stride 16 in dimension 0, not 32"),
        (a, x(20, 9).T, "`b` must have stride 1 in dimension 1, not 9"),
    ):
        with pytest.raises(ValueError, match=why):
            moved[1](wrong, out)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads(
    product: shipped.Kernel, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(shipped, "_team", [shipped.Team(threads)])
    a, b, c = x(200, 64), x(64, 96), x(200, 96) * 7
    product(a, b, c)
    assert (c == 64).all()


# Making one -------------------------------------------------------------------------


def test_the_folder_is_made(xetl: Any, tmp_path: Path) -> None:
    to = tmp_path / "dist"
    words = ("--wheel", "--target", "avx2", "-o", str(to))
    assert xetl("compile", f"{FILE}:gemm", GEMM, *words).exit_code == 0
    assert len(list(to.glob("gemm-0.1.0-*.whl"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--target", "pvc"], "no wheel can hold the code of backend `xegpu`"),
        (["--version", "x"], "`x` is no version"),
        (["--also", f"{FILE}:gemm '{GEMM}'"], "the same name"),
        (["--also", "'"], "is not FILE:KERNEL SIGNATURE"),
        (["--grid", "lambda m: ("], "`lambda m: (` is no Python"),
        (["--grid", "lambda m: other(m)"], "uses more than its argument, numbers,"),
        (["-o", "/nowhere/dist"], "there is no folder `/nowhere/dist`"),
    ],
)
def test_wrong_command_lines(
    xetl: Any, tmp_path: Path, words: list[str], answer: str
) -> None:
    words = [*words, "--target", "avx2"] if "--target" not in words else words
    base = ("compile", f"{FILE}:gemm", GEMM, "--wheel", "-o", str(tmp_path))
    result = xetl(*base, *words)
    assert result.exit_code == 2
    assert answer in result.stderr
    assert not list(tmp_path.iterdir())


SIZE = 3


def test_grids_that_can_be_written_down() -> None:
    assert grid_text(scale) is None
    assert eval(grid_text(gemm) or "", {"cdiv": shipped.cdiv})(
        SimpleNamespace(C=x(70, 45), BM=32, BN=16)
    ) == (3, 3)

    def of(grid: Any, **names: Any) -> str | None:
        source = SimpleNamespace(fn=_with_grid, grid=grid)
        return grid_text(source)

    assert of((2, 3)) == "(2, 3)"
    assert of(lambda m: 1) == "lambda m: (m.X.shape[0] // 3, 1)"


def decorated(**_: Any) -> Any:
    return lambda fn: fn


@decorated(grid=lambda m: (m.X.shape[0] // SIZE, 1))
def _with_grid(X: Any) -> None:
    pass
