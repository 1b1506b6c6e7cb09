"""`xetl ir`: kernels of files, modules and texts; signatures, constants, stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FILE = str(HERE / "kernels_for_commands.py")
GEMM = "f32[M,K] f32[K,N] f32[M,N]"
TEXT = """
gpu.module @m {
  gpu.func @copy(%a: memref<16x16xf32>, %b: memref<16x16xf32>) kernel {
    %0 = arith.constant 0 : index
    %ta = xetile.init_tile %a[%0, %0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    %tb = xetile.init_tile %b[%0, %0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    %v = xetile.load_tile %ta : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    xetile.store_tile %v, %tb : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}
"""


def test_a_process_of_its_own(shell: Any, tmp_path: Path) -> None:
    out = tmp_path / "gemm.s"
    done = shell("ir", f"{FILE}:gemm", GEMM, "--stage", "asm", "-o", str(out))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    assert "xetl_kernel:" in out.read_text()


def test_stages_and_targets(xetl: Any) -> None:
    first = xetl("ir", f"{FILE}:gemm", GEMM).stdout
    assert "xetile.tile_mma" in first
    by_pass = xetl("ir", f"{FILE}:gemm", GEMM, "--stage", "raise-to-brgemm").stdout
    assert "xsmm.brgemm.tile" in by_pass
    avx2 = xetl("ir", f"{FILE}:gemm", GEMM, "--stage", "llvm", "--target", "avx2")
    assert "<8 x float>" in avx2.stdout
    assert "<16 x float>" not in avx2.stdout


def test_constants_are_python_in_the_file(xetl: Any) -> None:
    plain = xetl("ir", f"{FILE}:gemm", GEMM, "BM=3 * 16").stdout
    assert "vector<48x32xf32>" in plain
    fused = xetl("ir", f"{FILE}:gemm", GEMM, "EPILOGUE=twice").stdout
    assert "arith.addf" in fused
    assert "arith.addf" not in plain


def test_a_text(xetl: Any, tmp_path: Path) -> None:
    file = tmp_path / "copy.mlir"
    file.write_text(TEXT)
    assert "xetile.load_tile" in xetl("ir", str(file)).stdout
    assert "xetile.load_tile" in xetl("ir", f"{file}:copy").stdout
    result = xetl("ir", str(file), GEMM)
    assert result.exit_code == 2
    assert "takes no signature" in result.output


def test_an_error_in_a_text_names_the_file(xetl: Any, tmp_path: Path) -> None:
    file = tmp_path / "wrong.mlir"
    file.write_text(TEXT.replace("arith.constant 0 : index", "arith.constant 0 : indx"))
    result = xetl("ir", str(file))
    assert result.exit_code == 2
    assert "error[X07" in result.stderr
    assert "wrong.mlir:4:" in result.stderr


def test_errors_of_kernels_are_on_their_line(xetl: Any) -> None:
    result = xetl("ir", f"{FILE}:gemm", "f32[M,K] bf16[K,N] f32[M,N]")
    assert result.exit_code == 2
    assert "error[X0314]: `tile_mma` cannot multiply f32 by bf16" in result.stderr
    assert "kernels_for_commands.py:19:" in result.stderr
    assert "more: xetl explain X0314" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "answer"),
    [
        (["nowhere.py"], 2, "there is no file `nowhere.py`"),
        (["no.such.module"], 2, "there is no file `no.such.module`"),
        ([f"{FILE}:gem"], 2, "no kernel called `gem`; did you mean `gemm`?"),
        ([FILE], 2, "has 4 kernels; write "),
        ([f"{FILE}:gemm", GEMM, "BM=f23"], 2, "`f23` of `BM=f23` is not defined; did"),
        ([f"{FILE}:gemm", GEMM, "BM=fast"], 2, "a text has quotes: 'fast'"),
        ([f"{FILE}:gemm", GEMM, "BM=1/0"], 2, "cannot be read: ZeroDivisionError"),
        ([f"{FILE}:gemm", GEMM, GEMM], 2, "is no constant; write NAME=VALUE"),
        ([f"{FILE}:gemm", *GEMM.split()], 2, "the signature as one word"),
        ([f"{FILE}:gemm", "f32[M"], 2, 'the signature "f32[M" is wrong'),
        ([f"{FILE}:gemm", GEMM, "--stage", "asn"], 2, "did you mean `asm`?"),
        ([f"{FILE}:gemm", GEMM, "--target", "avx21"], 2, "did you mean `avx2`?"),
        ([f"{FILE}:gemm", GEMM, "--backend", "gpu"], 2, "no backend called `gpu`"),
    ],
)
def test_wrong_command_lines(
    xetl: Any, words: list[str], code: int, answer: str
) -> None:
    result = xetl("ir", *words)
    assert result.exit_code == code
    assert answer in result.stderr
    assert "click" not in result.stderr


def test_a_file_that_fails_is_shown_from_its_own_line(
    xetl: Any, tmp_path: Path
) -> None:
    file = tmp_path / "broken.py"
    file.write_text("def f():\n    return 1 / 0\n\nf()\n")
    result = xetl("ir", f"{file}:k")
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert "cannot be imported" in lines[0]
    assert lines[2].endswith('broken.py", line 4, in <module>')
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_a_file_that_ends_the_process_is_a_broken_file(
    xetl: Any, tmp_path: Path
) -> None:
    file = tmp_path / "script.py"
    file.write_text("import sys\nsys.exit(3)\n")
    result = xetl("ir", f"{file}:k")
    assert result.exit_code == 2
    assert "script.py` cannot be imported" in result.stderr
    assert "SystemExit: 3" in result.stderr


def test_a_file_may_be_called_like_a_module(xetl: Any, tmp_path: Path) -> None:
    file = tmp_path / "numpy.py"
    file.write_text((HERE / "kernels_for_commands.py").read_text())
    assert "tile_mma" in xetl("ir", f"{file}:gemm", GEMM).stdout
