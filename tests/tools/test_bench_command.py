"""`xetl bench`: a kernel on arrays of random numbers, or a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = str(Path(__file__).parent / "kernels_for_commands.py")
GEMM = "f32[M,K] f32[K,N]^T f32[M,N]"
SIZES = ("--size", "M=64", "--size", "K=32", "--size", "N=48", "--seconds", "0.01")

REPORT = """
import xetl

@xetl.perf_report(xetl.Benchmark(x="N", values=[1, 2], lines=["a", "b"], unit="ms"))
def report(N, line):
    return float(N)
"""


def test_a_kernel(xetl: Any) -> None:
    done = xetl("bench", f"{FILE}:gemm", GEMM, *SIZES, "--target", "avx2", "BM=16")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("gemm on `cpu`, caches warm: ")
    done = xetl("bench", f"{FILE}:gemm", GEMM, *SIZES, "--json", "--cache", "cold")
    facts = json.loads(done.stdout)
    assert facts["ms_20"] <= facts["ms"] <= facts["ms_80"]
    assert facts["bytes_of_arguments"] == 4 * (64 * 32 + 32 * 48 + 64 * 48)


def test_a_report(xetl: Any, tmp_path: Path) -> None:
    file, csv = tmp_path / "measured.py", tmp_path / "out.csv"
    file.write_text(REPORT)
    done = xetl("bench", f"{file}:report", "--csv", str(csv))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "benchmark (ms)"
    assert csv.exists()
    rows = json.loads(xetl("bench", str(file), "--json").stdout)
    assert [row["point"] for row in rows[0]] == [{"N": 1}, {"N": 2}]


def test_what_is_missing_is_said(xetl: Any) -> None:
    for words, answer in (
        ((GEMM,), "how large is `M`?"),
        ((GEMM, *SIZES, "--size", "k=8"), "`k` is no size of the signature; there are"),
        ((GEMM, *SIZES, "--grid", "lambda m: m.D"), "`lambda m: m.D` fails: Launch"),
        ((GEMM, *SIZES, "--grid", "lambda m: f"), "`lambda m: f` fails: NameError"),
        ((GEMM, *SIZES, "--grid", "f("), "cannot be read: SyntaxError"),
        (("f32[M,16] f64 i64 i1 f32[M,16]",), "5 arguments for 3"),
    ):
        done = xetl("bench", f"{FILE}:gemm", *words)
        assert done.exit_code == 2
        assert answer in done.stderr


def test_a_kernel_without_a_grid(xetl: Any) -> None:
    words = (f"{FILE}:scale", "f32[M,16] f64 i64 i1 f32[M,16]", "--size", "M=4")
    trials = ("--try", "X=1")
    for command, rest in (("bench", ()), ("tune", trials)):
        done = xetl(command, *words, *rest)
        assert done.exit_code == 2
        assert "`scale` declares no grid: give one, such as --grid" in done.stderr
