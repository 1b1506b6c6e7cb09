"""What a GPU can do: by extensions of OpenCL, else by the width of its units."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl.errors import EmulatedDeviceWarning
from xetl_xegpu.launch import capabilities, devices
from xetl_xegpu.launch.capabilities import CAPABILITIES, capabilities_of
from xetl_xegpu.offline.ocloc import need_ocloc, run

NUMBER = 0xE20B
PVC, XE2 = 12 << 22 | 60 << 14, 20 << 22 | 1 << 14
ALL = " ".join(("cl_khr_fp64", *CAPABILITIES.values(), ""))


def gpu(has_fp64: bool = True) -> Any:
    aspects = {"has_aspect_fp64": has_fp64, "driver_version": "1.3"}
    return SimpleNamespace(is_gpu=True, name="Arc ", **aspects)


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it with what OpenCL and SYCL say of the only GPU there is."""
    utils = pytest.importorskip("dpctl.utils", reason="dpctl is not installed")

    def change(opencl: tuple[str, int] | None, **sycl: int) -> None:
        said = {} if opencl is None else {NUMBER: opencl}
        monkeypatch.setattr(capabilities, "_said_by_opencl", lambda: said)
        known = {"device_id": NUMBER, **sycl}
        monkeypatch.setattr(utils, "intel_device_info", lambda device: known)

    return change


def test_extensions_come_before_the_width_of_units(says: Any) -> None:
    says((ALL, XE2), gpu_eu_simd_width=8)
    target, text = devices._target_of(gpu())
    assert target == "bmg"
    assert text == f"{', '.join(CAPABILITIES)} (OpenCL extensions)"
    says((ALL, PVC))
    assert devices._target_of(gpu())[0] == "pvc"


@pytest.mark.parametrize("name", CAPABILITIES)
def test_what_is_missing_is_named(says: Any, name: str) -> None:
    says((ALL.replace(f"{CAPABILITIES[name]} ", ""), XE2), gpu_eu_simd_width=16)
    with pytest.warns(EmulatedDeviceWarning, match=f"`Arc` has no {name}, or"):
        target, text = devices._target_of(gpu())
    assert target == "opencl"
    assert f"; no {name} (OpenCL extensions)" in text
    with pytest.warns(EmulatedDeviceWarning):
        assert devices._target_of(gpu(has_fp64=False))[0] == "opencl_fp32"


def test_without_opencl_the_width_decides(
    says: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(None, gpu_eu_simd_width=16)
    assert str(capabilities_of(gpu())).endswith("(width of its units)")
    monkeypatch.undo()
    monkeypatch.setattr(capabilities, "_LIBRARY", "libno_such.so.1")
    assert capabilities._said_by_opencl.__wrapped__() == {}


def test_opencl_is_asked() -> None:
    """Of the driver for CPUs: what SYCL says of it, too."""
    devices.usable_devices()
    names = list[str]()
    for each in capabilities.opencl_devices(1 << 1):
        names.append(each.ask(0x102B).rstrip(b"\0").decode().strip())
        assert b"cl_khr_fp64" in each.ask(capabilities._EXTENSIONS)
        assert each.ask(0xFFFF) == b""
    cpus = [each for each in devices.dpctl().get_devices() if each.is_cpu]
    assert names == [each.name.strip() for each in cpus]


@pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
@pytest.mark.parametrize(
    ("gpu_name", "target"),
    [
        *((name, "bmg") for name in ("bmg", "lnl", "ptl", "nvl-s")),
        *((name, "opencl") for name in ("dg2", "mtl", "arl-h")),
        *((name, name) for name in ("pvc", "cri")),
    ],
)
def test_what_the_driver_of_each_gpu_says(
    gpu_name: str, target: str, tmp_path: Path
) -> None:
    """Intel's offline compiler lists what the driver of its version will say."""
    ocloc = need_ocloc()
    run([ocloc, "query", "CL_DEVICE_EXTENSIONS", "-device", gpu_name], tmp_path)
    extensions = (tmp_path / "CL_DEVICE_EXTENSIONS").read_text("utf-8")
    numbers = run([ocloc, "ids", gpu_name], tmp_path).stdout.split()[-1].split(".")
    version = int(numbers[0]) << 22 | int(numbers[1]) << 14
    found = capabilities._read(extensions, version)
    assert ("2-D blocks" in found.missing) == (target == "opencl")
    assert bool(found.missing) == (target == "opencl")
    assert found.missing or found.target == target
