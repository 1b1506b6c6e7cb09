"""Every benchmark runs; what it measures is nobody's business here."""

import ast
import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xetl_xegpu.offline.ocloc import SETUP, find_ocloc

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
QUICK = {
    "gemm": ["--rounds=1", "--seconds=0", "--threads", "1", "--only=f32 512"],
    "bench_rows": ["--rounds=1", "--seconds=0", "--threads", "1", "--only=4096 1024"],
    "bench_elements": ["--rounds=1", "--seconds=0", "--threads", "1", "--only=down"],
    "blocks": ["--rounds=1", "--seconds=0", "--threads", "1", "--only=forward"],
    "networks": ["--rounds=1", "--seconds=0", "--threads", "1", "--only=dlrm"],
    "ops": [
        "--rounds=1",
        "--seconds=0",
        "--threads",
        "1",
        "--only=float32 16 16",
    ],
    "ops_random": ["--rounds=1", "--seconds=0", "--threads", "1", "--count=12"],
    "products_random": ["--rounds=1", "--seconds=0", "--threads", "1", "--count=4"],
    "bench_attention": [
        "--rounds=1",
        "--seconds=0",
        "--threads",
        "1",
        "--only=f32 512 64",
    ],
    "bench_convolutions": [
        "--rounds=1",
        "--seconds=0",
        "--threads",
        "1",
        "--only=f32 64 64 56 1",
    ],
    "bench_import": ["--rounds=1"],
    "bench_compile": ["--rounds=1"],
    "bench_device_pipeline": ["--rounds=1"],
    "bench_interpret": ["--rounds=1"],
    "bench_xegpu": ["--rounds=1", "--calls=10"],
    "bench_gpu_bars": ["gemm bf16$"],
    "bench_gpu_code": [],
    "bench_gpu_plans": [],
}


@pytest.mark.parametrize("file", sorted(BENCHMARKS.glob("*.py")), ids=lambda f: f.stem)
def test_what_a_benchmark_imports_from_the_product_exists(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("xetl"):
            exec(ast.unparse(node), {})


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_benchmark_runs_and_writes_its_figures(name, tmp_path):
    if name.startswith("bench_gpu") and find_ocloc() is None:
        pytest.skip(f"Intel's ocloc is not installed: {SETUP}")
    done = subprocess.run(
        [sys.executable, BENCHMARKS / f"{name}.py", *QUICK[name]],
        cwd=tmp_path,
        env={**os.environ, "XETL_BENCHMARK_RESULTS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with (tmp_path / f"{name}.csv").open() as file:
        rows = list(csv.reader(file))
    assert len(rows) > 2
    assert all(float(row[-1]) >= 0 for row in rows[1:])


@pytest.mark.slow
def test_times_to_compile_do_not_depend_on_settings(tmp_path):
    """A folder for the cache once meant that imports were counted as compiling."""
    kept = tmp_path / "kept"
    settings = {"XETL_CACHE_DIR": str(kept), "XETL_BACKEND": "none", "XETL_DUMP": "all"}
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "gemm.py", "--part=compile", "--rounds=1"],
        env={**os.environ, **settings, "XETL_BENCHMARK_RESULTS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not kept.exists()
    assert not done.stderr
