"""`xetl doctor --gpu`: cases, processes that crash, the report, no device."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.backends.xegpu import device
from xetl.errors import LaunchError
from xetl.tools.self_test import report, run
from xetl.tools.self_test.cases import all_cases
from xetl.tools.self_test.report import results
from xetl.tools.self_test.run import difference, expected
from xetl_xegpu import simt
from xetl_xegpu.launch import devices


def test_names_are_unique() -> None:
    names = [each.name for each in all_cases()]
    assert len(set(names)) == len(names)


def test_some_cases_on_a_device(xetl: Any, tmp_path: Path) -> None:
    device.require()
    out = tmp_path / "report.json"
    names = "^block message (int8|at edges)|address|rows (combined|by)|slice"
    done = xetl("doctor", "--gpu", "--only", names, "-o", str(out))
    assert done.exit_code == 0, done.output
    assert f"wrote {out}; attach it to an issue" in done.stdout
    assert "8 ok, in " in done.stdout
    found = json.loads(out.read_text())
    (tested, *_) = found["devices"]
    assert [each["state"] for each in tested["cases"]] == ["ok"] * 8
    assert "backend xegpu" in found["machine"]


@pytest.mark.slow
def test_messages_and_assembly_are_covered() -> None:
    """In kernels for a GPU: no emulation proves what Intel's compiler makes of them."""
    texts: list[str] = []
    for case in all_cases():
        if case.name.startswith(("block", "transposed", "rows", "DPAS")):
            how: Any = {"backend": "xegpu", "target": "pvc", **case.constants}
            text = case.kernel.ir("lanes", *case.arrays(), **how)
            texts.append(text.split("_unaligned")[0])
    text = "".join(texts)
    messages = re.findall(r"simt.block_(\w+) .*bits = (\d+) .*?}", text)
    verbs = ("load", "store", "prefetch")
    assert {(verb, bits) for verb in verbs for bits in ["8", "16", "32"]} == {*messages}
    for mode in ("transform", "transpose"):
        assert f'mode = "{mode}"' in text
    for kind in simt.KINDS_OF_ROWS:
        assert f'simt.reduce_rows "{kind}"' in text
    for half in ("[0, 2, 4, 6, 8, 10, 12, 14]", "[1, 3, 5, 7, 9, 11, 13, 15]"):
        assert re.search(f"vector.shuffle .*{re.escape(half)}", text)


@pytest.mark.slow
def test_all_cases_on_a_device(xetl: Any, tmp_path: Path) -> None:
    device.require()
    done = xetl("doctor", "--gpu", "--json", "-o", str(tmp_path / "report.json"))
    wrong = [
        each
        for tested in json.loads(done.stdout)["devices"]
        for each in tested["cases"]
        if each["state"] not in ("ok", "skipped")
    ]
    assert (done.exit_code, wrong) == (0, [])


def test_no_device(xetl: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(devices, "usable_devices", list)
    done = xetl("doctor", "--gpu")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "there is no device that can run kernels: `xetl doctor` says" in done.stderr

    def missing() -> Any:
        raise LaunchError("no dpctl", code="X0830", help="pip install dpctl")

    monkeypatch.setattr(devices, "usable_devices", missing)
    assert "pip install dpctl" in xetl("doctor", "--gpu").stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["--gpu", "--only", "dpass"], "no case is called like `dpass`; their names"),
        (["--gpu", "--only", "("], "`(` is no regular expression"),
        (["--only", "DPAS"], "are for the self-test: add --gpu"),
    ],
)
def test_wrong_command_lines(xetl: Any, words: list[str], answer: str) -> None:
    done = xetl("doctor", *words)
    assert done.exit_code == 2
    assert answer in done.stderr


def test_a_wrong_result_is_found(
    xetl: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    case = next(each for each in all_cases() if each.name == "integers int32")
    target: Any = SimpleNamespace(lacks=frozenset(), queue=None)
    monkeypatch.setattr(run, "result", lambda *_: expected(case) + 1)
    facts = run.run(case, "xegpu", target)
    assert facts["state"] == "wrong"
    assert "differs by" in facts["text"]

    def failing(*_: Any) -> Any:
        raise OSError("device lost")

    monkeypatch.setattr(run, "result", failing)
    assert run.run(case, "xegpu", target)["text"] == "OSError: device lost"
    needy = next(each for each in all_cases() if each.needs)
    target.lacks = frozenset({"f64"})
    assert run.run(needy, "xegpu", target)["state"] == "skipped"

    fake = SimpleNamespace(name="gpu:0", text="a GPU", target="pvc", is_gpu=True)
    monkeypatch.setattr(report, "_devices", lambda: [("xegpu", fake)])
    monkeypatch.setattr(report, "results", lambda *_: iter([facts]))
    done = xetl("doctor", "--gpu", "-o", str(tmp_path / "report.json"))
    assert done.exit_code == 1
    assert "1 wrong" in done.stdout


def test_differences() -> None:
    assert difference(np.array([1.0, 2.0]), np.array([1.0, 4.0])) == 0.5
    assert difference(np.array([np.nan]), np.array([1.0])) == float("inf")
    assert difference(np.array([3], "u1"), np.array([5], "u1")) == pytest.approx(0.4)


CHILD = """
import json, os, sys, time
for name in sys.argv[3:]:
    print(json.dumps({"begins": name}), flush=True)
    print("a driver prints")
    if name == "crash":
        print("no luck", file=sys.stderr, flush=True)
        os._exit(139)
    if name == "hang":
        time.sleep(60)
    print(json.dumps({"case": name, "state": "ok"}), flush=True)
"""


def test_what_follows_a_crash_is_run() -> None:
    names = ["a", "crash", "b", "hang", "c"]
    start = time.monotonic()
    found = list(results("x", "gpu", names, seconds=2.0, command=("-c", CHILD)))
    assert time.monotonic() - start < 30
    assert [(each["case"], each["state"]) for each in found] == [
        ("a", "ok"),
        ("crash", "crashes"),
        ("b", "ok"),
        ("hang", "hangs"),
        ("c", "ok"),
    ]
    assert found[1]["text"] == "the process ended with 139: no luck"
