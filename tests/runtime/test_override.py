"""`XETL_OVERRIDE`: a text in place of the module at a stage; `XETL_PERF`."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import IRError, LaunchError
from xetl.runtime.kernel import kernel


@kernel(grid=1)
def twice(X, Y):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 16)))
    xetile.store_tile(v * 2.0, xetile.init_tile(Y, [0, 0], (4, 16)))


@kernel(grid=1)
def other(X, Y):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 16)))
    xetile.store_tile(v * 2.0, xetile.init_tile(Y, [0, 0], (4, 16)))


SIGNATURE = "f32[M,N] f32[M,N]"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path / "cache"))


def result(of: Any) -> float:
    x, y = np.ones((4, 16), "f4"), np.zeros((4, 16), "f4")
    of(x, y)
    return float(y.max())


@pytest.mark.parametrize("stage", ["xetile", "cse", "xsmm", "loops"])
def test_the_text_is_what_runs(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "changed.mlir"
    text = twice.ir(stage, SIGNATURE)
    assert "2.000000e+00" in text
    file.write_text(text.replace("2.000000e+00", "3.000000e+00"))
    assert result(twice) == 2
    monkeypatch.setenv("XETL_OVERRIDE", f"after:{stage}={file}")
    twice.shortcuts.clear()
    assert result(twice) == 3
    assert result(other) == 2
    assert "3.000000e+00" in twice.ir(stage, SIGNATURE)
    monkeypatch.delenv("XETL_OVERRIDE")
    twice.shortcuts.clear()
    assert result(twice) == 2


@pytest.mark.parametrize("stage", ["xetile-mapped", "xegpu", "lanes"])
def test_stages_of_gpus(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "same.mlir"
    file.write_text(twice.ir(stage, SIGNATURE, target="pvc"))
    before = twice.ir("llvm", SIGNATURE, target="pvc")
    monkeypatch.setenv("XETL_OVERRIDE", f"after:{stage}={file}")
    assert twice.ir("llvm", SIGNATURE, target="pvc") == before


@pytest.mark.parametrize(
    ("setting", "answer"),
    [
        ("loops", "it must be after:<stage or pass>=FILE"),
        ("after:lops=x", "has no stage or pass `lops`"),
        ("after:loops=/nowhere/x", "`/nowhere/x` cannot be read: No such file"),
    ],
)
def test_wrong_settings(
    setting: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XETL_OVERRIDE", setting)
    with pytest.raises(LaunchError, match=answer):
        twice.ir("llvm", SIGNATURE, target="avx2")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("builtin.module { foo }", r"wrong.mlir:1:18"),
        (
            "func.func @twice(%a: f32) {\n  return %a : f32\n}",
            "the text is wrong",
        ),
    ],
)
def test_wrong_texts(
    text: str, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "wrong.mlir"
    file.write_text(text)
    monkeypatch.setenv("XETL_OVERRIDE", f"after:loops={file}")
    with pytest.raises(IRError, match=answer):
        twice.ir("llvm", SIGNATURE, target="avx2")


PROFILED = """
import numpy as np
from xetl import xetile

@xetile.kernel(grid=64)
def busy(X, Y):
    row = xetile.program_id(0) * 16
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (16, 64)))
    for _ in range(2000):
        v = v * 0.5 + 1.0
    xetile.store_tile(v, xetile.init_tile(Y, [row, 0], (16, 64)))

x = np.ones((1024, 64), "f4")
y = np.empty_like(x)
for _ in range(30):
    busy(x, y)
"""


def test_perf_is_told_names_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(f"/tmp/perf-{os.getpid()}.map")
    dump = Path(f"/tmp/jit-{os.getpid()}.dump")
    file.unlink(missing_ok=True)
    monkeypatch.setenv("XETL_PERF", "1")

    @kernel(grid=1)
    def named(X, Y):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 16)))
        xetile.store_tile(v * 5.0, xetile.init_tile(Y, [0, 0], (4, 16)))

    try:
        assert result(named) == 5
        (line,) = file.read_text().splitlines()
        start, size, name = line.split()
        assert (int(start, 16) > 0, int(size, 16) > 50) == (True, True)
        assert name == "xetl:named:host"
        data = dump.read_bytes()
        assert struct.unpack_from("<4I", data) == (0x4A695444, 1, 40, 62)
        (length,) = struct.unpack_from("<I", data, 44)
        assert len(data) == 40 + length  # one record
        address, code_size = struct.unpack_from("<QQ", data, 40 + 32)
        assert (f"{address:x}", f"{code_size:x}") == (start, size)
        assert data[40 + 56 :].startswith(b"xetl:named:host\0")
    finally:
        file.unlink(missing_ok=True)
        dump.unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not here")
def test_perf_itself_finds_the_code(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(PROFILED)
    perf: Any = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True)
    settings = {**os.environ, "XETL_PERF": "1"}
    record = ["perf", "record", "-k", "mono", "-o", "data", sys.executable, str(script)]
    if perf(record, env=settings).returncode != 0:
        pytest.skip("perf may not record here")
    perf(["perf", "inject", "--jit", "-i", "data", "-o", "whole"], check=True)
    report = perf(["perf", "report", "-i", "whole", "--stdio"], check=True).stdout
    (line,) = [each for each in report.splitlines() if "xetl:busy:host" in each]
    assert "jitted-" in line
