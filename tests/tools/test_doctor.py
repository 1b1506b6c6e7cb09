"""`xetl doctor`: what it finds, what it calls a problem, and its exit code."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.runtime.conftest import FakeBackend
from xetl.settings import config
from xetl.tools import machine
from xetl_cpu import doctor, native, targets
from xetl_cpu.launch.threads import ThreadLayer


def findings(xetl: Any, **variables: str) -> dict[str, list[dict[str, Any]]]:
    """What it prints as JSON, by heading."""
    return json.loads(xetl("doctor", "--json", **variables).stdout)


def about(topic: str, xetl: Any, **variables: str) -> list[dict[str, Any]]:
    found = findings(xetl, **variables)
    return [one for each in found.values() for one in each if one["topic"] == topic]


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "assigned", {})


def test_a_process_of_its_own(shell: Any) -> None:
    done = shell("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\nno problems\n")
    for word in ("packages", "threads", "target avx2", "cache", "products"):
        assert word in done.stdout


def test_headings_are_the_core_and_the_backends(xetl: Any) -> None:
    assert {"xetl", "backend cpu", "backend reference"} <= set(findings(xetl))


def test_variables_that_are_wrong(xetl: Any) -> None:
    result = xetl("doctor", XETL_CAHCE="1", XETL_INTERPRET="perhaps")
    assert result.exit_code == 1
    assert "XETL_CAHCE=1 is no setting of xetl" in result.stdout
    assert "did you mean `XETL_CACHE`?" in result.stdout
    assert "the variable XETL_INTERPRET is 'perhaps': it must be 1 or 0" in (
        result.stdout
    )


def test_a_backend_that_does_not_exist(xetl: Any) -> None:
    (found,) = about("launches", xetl, XETL_BACKEND="cuda")
    assert found["state"] == "problem"
    assert "no backend called `cuda`" in found["text"]
    assert "cpu, reference" in found["fix"]


def test_a_cache_that_cannot_be_written(xetl: Any) -> None:
    (found,) = about("cache", xetl, XETL_CACHE_DIR="/proc/nowhere")
    assert found["state"] == "problem"
    assert "/proc/nowhere cannot be used" in found["text"]
    (found,) = about("cache", xetl, XETL_CACHE="0")
    assert found["state"] == "note"


def test_what_is_not_installed(xetl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = machine._version
    missing = ("torch", "llvmlite")
    monkeypatch.setattr(
        machine, "_version", lambda name: None if name in missing else installed(name)
    )
    states = [about(name, xetl)[0]["state"] for name in missing]
    assert states == ["note", "problem"]


class Silent(FakeBackend):
    targets = ("one", "two")


def test_a_backend_that_fails_does_not_fail_the_others(
    xetl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise OSError("no such driver")

    backends = {
        "broken": SimpleNamespace(targets=["x"], doctor=broken),
        "silent": Silent(),
    }
    monkeypatch.setattr(machine, "backend_names", lambda: [*backends])
    monkeypatch.setattr(machine, "find_backend", backends.__getitem__)
    found = findings(xetl)
    assert found["backend broken"][0]["text"].endswith("OSError: no such driver")
    assert found["backend silent"][0]["text"] == "one, two"


# The processor ----------------------------------------------------------------------


def test_targets_that_do_not_run_say_why(
    xetl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    avx2 = frozenset({"avx", "avx2", "fma", "f16c", "bmi2"})
    for module in (targets, doctor):
        monkeypatch.setattr(module, "host_features", lambda: avx2)
    (found,) = about("target avx512", xetl)
    assert found["state"] == "note"
    assert "the processor lacks avx512bw, avx512cd" in found["text"]
    (found,) = about("target host", xetl)
    assert found["text"].endswith("with the kernels of `avx2`")
    (found,) = about("XETL_TARGET", xetl, XETL_TARGET="avx512")
    assert found["state"] == "problem"


def test_a_processor_with_tiles_that_linux_does_not_give(
    xetl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = frozenset().union(*(each.requires for each in targets.TARGETS.values()))
    for module in (targets, doctor):
        monkeypatch.setattr(module, "host_features", lambda: every)
    monkeypatch.setattr(targets, "tiles_are_permitted", lambda: False)
    (found,) = about("target amx", xetl)
    assert "Linux refuses tiles" in found["text"]
    monkeypatch.setattr(targets, "tiles_are_permitted", lambda: True)
    (found,) = about("target amx", xetl)
    assert found["text"] == "runs here"
    assert "permitted by Linux" in about("AMX", xetl)[0]["text"]


@pytest.mark.parametrize(
    ("layer", "state", "words"),
    [
        (ThreadLayer("omp", 2), "ok", "numba's layer `omp`"),
        (ThreadLayer("workqueue", 2), "note", "takes 0.1 ms to wake"),
        (ThreadLayer("serial", 1), "problem", "no pool of numba's loads"),
    ],
)
def test_threads(
    xetl: Any,
    monkeypatch: pytest.MonkeyPatch,
    layer: ThreadLayer,
    state: str,
    words: str,
) -> None:
    monkeypatch.setattr(doctor, "thread_layer", lambda: layer)
    (found,) = about("threads", xetl, NUMBA_NUM_THREADS="2")
    assert found["state"] == state
    assert "2 (set by NUMBA_NUM_THREADS)" in found["text"]
    assert words in found["text"]


# Libraries --------------------------------------------------------------------------


def test_products_by_a_library(xetl: Any) -> None:
    (found,) = about("products", xetl, XETL_XSMM="recording")
    assert found["state"] == "ok"
    assert found["text"].startswith("by XETL_XSMM=recording, which also sets up AMX")
    (found,) = about("products", xetl, XETL_XSMM="/there/is/none.so")
    assert found["state"] == "problem"
    assert "xetl's own micro-kernels" in found["text"]
    assert "none.so" in found["text"]


def test_without_the_native_shim(xetl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "xsmm_shim", lambda: None)
    monkeypatch.setattr(doctor, "system_root", lambda: None)
    (found,) = about("native shim", xetl)
    assert found["state"] == "note"
    assert "libxsmm-dev" in found["fix"]
