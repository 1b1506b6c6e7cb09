"""`xetl repro`: a file that fails alone as the kernel did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = str(Path(__file__).parent / "kernels_for_commands.py")
WRONG = "f32[M,K] bf16[K,N] f32[M,N]"

KERNEL = """from __future__ import annotations

from xetl import xetile
from xetl.xetile import constexpr
import beside_of_repro

@xetile.kernel
def k(X, N: constexpr, OF: constexpr):
    tile = xetile.init_tile(X, [0, 0], (N, 16))
    xetile.store_tile(beside_of_repro.bad(xetile.load_tile(tile)).to(OF), tile)

if __name__ == "__main__":
    raise SystemExit("a script")
"""
BESIDE = """from xetl import xetile

@xetile.function
def bad(v):
    return v + "text \\n"
"""
TEXT = """
func.func @k(%a: memref<4x4xf32>) {
  %0 = "test.unknown"() : () -> index
  return
}
"""


def run(file: Path, folder: Path) -> str:
    """What the file says, far from where it was made."""
    away = folder / "away"
    away.mkdir()
    (away / "sent.py").write_bytes(file.read_bytes())
    done = subprocess.run(
        [sys.executable, "sent.py"], cwd=away, capture_output=True, text=True
    )
    assert done.returncode
    return done.stderr


def test_a_wrong_signature(xetl: Any, tmp_path: Path) -> None:
    out = tmp_path / "repro.py"
    done = xetl("repro", f"{FILE}:gemm", WRONG, "BM=16", "--target", "avx2", "-o", out)
    assert done.exit_code == 0, done.output
    headline = "error[X0314]: `tile_mma` cannot multiply f32 by bf16"
    assert f"it fails as the kernel does: {headline}" in done.stdout
    text = out.read_text()
    assert f"# {headline}" in text
    assert "{'BM': '16'}" in text
    assert "target='avx2'" in text
    assert "kernels_for_commands.py:19" in run(out, tmp_path)


def test_files_beside_it_are_taken_along(shell: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "k.py").write_text(KERNEL)
    (home / "beside_of_repro.py").write_text(BESIDE)
    out = home / "repro.py"
    words = (f"{home / 'k.py'}:k", "f32[M,N]", "N=8", "OF=f16", "-o", str(out))
    done = shell("repro", *words, XETL_VERIFY="1")
    assert done.returncode == 0, done.stderr
    assert "'XETL_VERIFY': '1'" in out.read_text()
    said = run(out, tmp_path)
    assert "<beside_of_repro>:5:" in said
    assert "k.py:10:" in said


def test_nothing_to_show(xetl: Any, tmp_path: Path) -> None:
    out = tmp_path / "repro.py"
    signature = "f32[M,K] f32[K,N] f32[M,N]"
    done = xetl("repro", f"{FILE}:gemm", signature, "--target", "avx2", "-o", out)
    assert done.exit_code == 2
    assert "`gemm` compiles without an error for `avx2`" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["nowhere.py:k", WRONG], "there is no file `nowhere.py`"),
        ([f"{FILE}:gemm", WRONG, "-o", "/nowhere/x.py"], "there is no folder"),
    ],
)
def test_wrong_command_lines(xetl: Any, words: list[str], answer: str) -> None:
    done = xetl("repro", *words)
    assert done.exit_code == 2
    assert answer in done.stderr
