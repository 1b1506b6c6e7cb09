"""`xetl tune --offline`: values of constants, ranked by what Intel's compiler says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from xetl_xegpu.offline.ocloc import SETUP, find_ocloc

FILE = str(Path(__file__).parent / "kernels_for_commands.py")
GEMM = "f32[M,K] f32[K,N] f32[M,N]"

needs_ocloc = pytest.mark.skipif(
    find_ocloc() is None,
    reason=f"Intel's offline compiler is not here: {SETUP}",
)


@needs_ocloc
def test_values_are_ranked(xetl: Any) -> None:
    words = ("--offline", "--target", "pvc", "--try", "BM=16,32", "--try", "BN=16,32")
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words)
    assert done.exit_code == 0
    head, *rows = done.stdout.splitlines()
    assert head.split()[:3] == ["spill_bytes", "instructions", "subgroups"]
    assert len(rows) == 4
    numbers = [tuple(map(int, row.split()[2:5])) for row in rows]
    ranks = [(spilled, each * subgroups) for spilled, each, subgroups in numbers]
    assert ranks == sorted(ranks)
    assert all(instructions > 0 for _, instructions in ranks)


def test_a_target_without_such_a_compiler(xetl: Any) -> None:
    words = ("--offline", "--target", "avx2", "--try", "BM=16")
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words)
    assert done.exit_code == 2
    assert "no offline compiler for `avx2`" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--try", "BM=16"), "only `--offline` is there"),
        (("--offline", "--try", "BM"), "`BM` is not NAME=VALUE,VALUE"),
        (("--offline",), "Missing option '--try'"),
    ],
)
def test_wrong_command_lines(xetl: Any, words: tuple[str, ...], said: str) -> None:
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words)
    assert done.exit_code == 2
    assert said in done.stderr
