"""`xetl tune`: values of constants, ranked by time or by what Intel's compiler says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from xetl.backend import find_backend
from xetl_xegpu.offline import isa
from xetl_xegpu.offline.ocloc import SETUP, find_ocloc

FILE = str(Path(__file__).parent / "kernels_for_commands.py")
TUNED = str(Path(__file__).parent / "tuned_for_commands.py")
GEMM = "f32[M,K] f32[K,N] f32[M,N]"

needs_ocloc = pytest.mark.skipif(
    find_ocloc() is None,
    reason=f"Intel's offline compiler is not here: {SETUP}",
)


@pytest.mark.slow
@needs_ocloc
def test_values_are_ranked(xetl: Any) -> None:
    words = ("--offline", "--target", "pvc", "--try", "BM=16,32", "--try", "BN=16,32")
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words)
    assert done.exit_code == 0
    head, *rows = done.stdout.splitlines()
    names = ["ms", "of", "peak", "spill_bytes", "instructions", "subgroups"]
    assert head.split()[:6] == names
    assert rows.pop() == "expected of Max 1550, a model's figures"
    assert len(rows) == 4
    assert all(row.split()[2] == "-" for row in rows)  # no sizes, no times
    found = json.loads(xetl("tune", f"{FILE}:gemm", GEMM, *words, "--json").stdout)
    ranks = [(each["spill_bytes"], -each["expected"][0]["share"]) for each in found]
    assert ranks == sorted(ranks)
    assert all(each["instructions"] > 0 for each in found)


def test_without_intel_s_compiler_the_model_ranks(
    xetl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isa, "find_ocloc", lambda: None)
    sizes = [word for name in "MKN" for word in ("--size", f"{name}=512")]
    words = ("--offline", "--target", "bmg", "--try", "BM=16,64", *sizes, "--json")
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words)
    assert done.exit_code == 0
    best, other = json.loads(done.stdout)
    assert best["ms"] <= other["ms"]
    assert best["spill_bytes"] is None
    (expected,) = best["expected"]
    assert expected["machine"] == "Arc B580"
    assert 0 < expected["share"] < 1


SIZES = ("--size", "M=64", "--size", "K=32", "--size", "N=48")


def test_values_are_timed_here(xetl: Any, tmp_path: Path) -> None:
    words = (*SIZES, "--try", "BM=16,32", "--try", "BN=16")
    folder = str(tmp_path)
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words, XETL_TUNED_DIR=folder)
    assert done.exit_code == 0
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["ms"]
    assert {row.split()[0] for row in rows} == {"BM=16,", "BM=32,"}
    times = [float(row.split()[2]) for row in rows]
    assert times == sorted(times)
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_json(xetl: Any, tmp_path: Path) -> None:
    words = (*SIZES, "--try", "BM=16,32", "--json")
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words, XETL_TUNED_DIR=str(tmp_path))
    found = json.loads(done.stdout)
    assert sorted(each["config"]["BM"] for each in found) == [16, 32]
    assert found[0]["ms"] <= found[1]["ms"]


def test_a_kernel_with_configs_of_its_own(xetl: Any, tmp_path: Path) -> None:
    words = ("f32[32,16]", "double=2.0", "--grid", "lambda m: 32 // m.BM")
    for _ in range(2):  # what is remembered does not count
        done = xetl("tune", TUNED, *words, XETL_TUNED_DIR=str(tmp_path))
        assert done.exit_code == 0
        assert len(done.stdout.splitlines()) == 3
    done = xetl("tune", TUNED, "f32[32,16] f32", *words[1:])  # or describes the number
    assert done.exit_code == 0
    done = xetl("tune", TUNED, "f32[32,16] f32", *words[2:])
    assert done.exit_code == 2
    assert "`double` is a number: say its value after the signature" in done.stderr


def test_a_target_without_such_a_compiler(xetl: Any) -> None:
    words = ("--offline", "--target", "avx2", "--try", "BM=16")
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words)
    assert done.exit_code == 2
    assert "no offline compiler for `avx2`" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--try", "BM=16"), "how large is `M`? Say `--size M=1024`"),
        (("--size", "M"), "`M` is not NAME=NUMBER"),
        ((), "`gemm` has no configs: give values, such as `--try BM=64,128`"),
        (("--offline", "--try", "BM"), "`BM` is not NAME=VALUE,VALUE"),
        (("--offline",), "`--offline` compiles the values of `--try`"),
        ((*SIZES, "--try", "BM=16"), "there is one config and nothing to choose"),
        (
            (*SIZES, "--try", "BM=16,32", "--target", "pvcc"),
            "help: did you mean `pvc`?",
        ),
    ],
)
def test_wrong_command_lines(xetl: Any, words: tuple[str, ...], said: str) -> None:
    done = xetl("tune", f"{FILE}:gemm", GEMM, *words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_the_processor_is_measured(xetl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = find_backend("cpu")
    monkeypatch.setattr(type(backend), "tune_machine", lambda _: ["one", "two"])
    done = xetl("tune", "--cpu")
    assert (done.exit_code, done.stdout) == (0, "one\ntwo\n")
    for words in (("--cpu", "extra"), ("--budget", "3", "--cpu")):
        done = xetl("tune", *words)
        assert done.exit_code == 2
        assert "`--cpu` measures no kernel" in done.stderr
