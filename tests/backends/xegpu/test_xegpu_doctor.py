"""What `xetl doctor` says of devices, drivers and the offline compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.backends.xegpu import device
from xetl.backend import find_backend
from xetl.errors import LaunchError
from xetl.findings import Finding
from xetl_xegpu.launch import devices
from xetl_xegpu.offline import ocloc


def about(topic: str) -> Finding:
    backend: Any = find_backend("xegpu")
    return next(each for each in backend.doctor() if each.topic == topic)


def test_the_device_that_launches_take() -> None:
    device.require()
    found = about("device")
    taken = devices.default_queue().sycl_device
    assert found.state == "ok"
    assert found.text.startswith(f"{taken.filter_string} {taken.name.strip()}, driver ")
    assert f"target `{devices.facts_of(taken).target}`" in found.text
    assert found.text.endswith("; launches take it")


def test_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise LaunchError("no dpctl", code="X0830")

    monkeypatch.setattr(devices, "usable_devices", missing)
    found = about("device")
    assert (found.state, found.text) == ("note", "no dpctl")
    assert found.fix == "pip install dpctl intel-opencl-rt"


def test_no_usable_device(monkeypatch: pytest.MonkeyPatch) -> None:
    device.require()
    monkeypatch.setattr(devices, "usable_devices", list)
    found = about("device")
    assert found.state == "note"
    assert found.text.startswith("none can run kernels; there are: ")


def test_the_driver_for_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "installed_driver", lambda: Path("/x/libintelocl.so"))
    monkeypatch.setenv(devices.VARIABLE, "/x/libintelocl.so")
    assert about("OpenCL").text.endswith(" in /x/libintelocl.so")
    monkeypatch.setenv(devices.VARIABLE, "/mine.so")
    assert about("OpenCL").text == "drivers of OCL_ICD_FILENAMES: /mine.so"
    monkeypatch.setattr(devices, "installed_driver", lambda: None)
    monkeypatch.delenv(devices.VARIABLE)
    found = about("OpenCL")
    assert (found.state, found.fix) == ("note", "pip install intel-opencl-rt")


def test_the_offline_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> Any:
        raise LaunchError("XETL_OCLOC names no program", code="X0840", help="unset it")

    monkeypatch.setattr(ocloc, "find_ocloc", lambda: Path("/x/ocloc"))
    assert about("ocloc").text == "/x/ocloc"
    monkeypatch.setattr(ocloc, "find_ocloc", lambda: None)
    assert about("ocloc").fix == ocloc.SETUP
    monkeypatch.setattr(ocloc, "find_ocloc", wrong)
    found = about("ocloc")
    assert (found.state, found.fix) == ("problem", "unset it")


def test_what_a_gpu_can_do_and_who_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    device.require()
    said = "2-D blocks, DPAS (OpenCL extensions)"
    facts = devices.facts_of(devices.default_queue().sycl_device)
    facts = replace(facts, is_gpu=True, capabilities=said)
    monkeypatch.setattr(devices, "facts_of", lambda device: facts)
    assert f" lanes; {said}; " in about("device").text
