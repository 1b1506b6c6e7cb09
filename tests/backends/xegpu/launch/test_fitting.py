"""What a kernel needs, what a device has, and which of two kernels is taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from launched import aligned, counting, grid_of, scale

from xetl import xetile
from xetl.backend import Artifact
from xetl.errors import CompileError, EmulatedDeviceWarning, LaunchError
from xetl.language.signature import Signature
from xetl.settings import config
from xetl.xetile import wg_map
from xetl_xegpu.launch import devices
from xetl_xegpu.launch.capabilities import Capabilities
from xetl_xegpu.launch.executable import XegpuExecutable
from xetl_xegpu.limits import LIMIT, why_no_blocks


@xetile.kernel
def wide(A, C):
    many = wg_map(sg_layout=[4, 1], sg_data=[8, 16])
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (32, 16), wg_map=many))
    xetile.store_tile(a + a, xetile.init_tile(C, [0, 0], (32, 16), wg_map=many))


@xetile.kernel
def shared(A, C):
    memory, row = xetile.slm((16, 16), xetile.f32), xetile.program_id(0)
    room = xetile.init_tile(memory, [row, 0], (16, 16))
    xetile.store_tile(xetile.load_tile(xetile.init_tile(A, [0, 0], (16, 16))), room)
    xetile.barrier()
    xetile.store_tile(xetile.load_tile(room), xetile.init_tile(C, [0, 0], (16, 16)))


def test_what_the_device_lacks(pretend: Any) -> None:
    a, c = counting((32, 16)), aligned((32, 16))
    wide_a = a.astype(np.float64)
    cases = [
        ({"lacks": frozenset({"f64"})}, scale, wide_a, "computes in f64"),
        ({"slm_bytes": 1000}, shared, a, "needs 1024 bytes of shared memory"),
        ({"most_lanes": 32}, wide, a, "workgroups of 4 subgroups, more than 2"),
    ]
    for fields, kernel, given, text in cases:
        pretend(**fields)
        with pytest.raises(LaunchError, match=text) as caught:
            kernel[1](given, c.astype(given.dtype))
        assert caught.value.code == "X0831"
        assert caught.value.help
    assert not c.any()


@xetile.kernel
def endless(A, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (2048, 2048)))
    xetile.store_tile(a + a, xetile.init_tile(C, [0, 0], (2048, 2048)))


def test_a_value_of_many_times_the_registers() -> None:
    """Before minutes go by: each instruction moves a few rows of it."""
    a = counting((16, 16))
    with pytest.raises(CompileError, match="this value is too large") as caught:
        endless[1](a, a)
    error = caught.value
    assert (error.code, error.function) == ("X0212", "endless")
    assert "each of 32 subgroups has 524,288 bytes of it" in error.notes[0]
    assert "256 x 256" in (error.help or "")
    assert np.array_equal(a, counting((16, 16)))


def test_code_for_another_device() -> None:
    a = counting((16, 16))
    config.target = "pvc"
    try:
        with pytest.raises(LaunchError, match="cannot run code for target `pvc`"):
            scale[1](a, a)
    finally:
        del config.target
    assert a[0, 1] == 1


def test_a_program_that_is_none() -> None:
    artifact = Artifact(
        b"no program" * 8,
        {
            "target": "opencl",
            "kernels": [
                {"name": "k", "lanes": [16, 1, 1], "surfaces": [], "bytes": 80,
                 "log": []}
            ],
            "arguments": [], "stored": [], "slm_bytes": 0, "grf": 128, "needs": [],
        },
    )  # fmt: skip
    with pytest.raises(LaunchError, match="failed on kernel `k`") as caught:
        XegpuExecutable(artifact, Signature(())).launch((1, 1, 1), [])
    assert caught.value.code == "X0832"
    assert "DPCTL_VERBOSITY" in (caught.value.help or "")


class TestSurfaces:
    """Which kernel is taken."""

    # address, columns, distance of rows, in bytes
    FITTING = ((0, 64, 64), (64, 256, 1024), (0, 68, 80), (0, 1 << 20, 1 << 20))
    NOT = ((4, 64, 64), (0, 60, 64), (0, 66, 80), (0, 64, 60), (0, 64, 72),
           (0, 128, 64), (0, LIMIT, LIMIT))  # fmt: skip

    @pytest.mark.parametrize("case", FITTING)
    def test_a_fitting_surface(self, case: tuple[int, int, int]) -> None:
        base, width, pitch = case
        assert why_no_blocks(base, width, 8, pitch) is None

    @pytest.mark.parametrize("case", NOT)
    def test_any_other(self, case: tuple[int, int, int]) -> None:
        base, width, pitch = case
        assert why_no_blocks(base, width, 8, pitch) is not None

    def test_many_rows_and_leading_dimensions(self) -> None:
        assert why_no_blocks(0, 64, LIMIT, 64) is not None
        assert why_no_blocks(0, 64, 8, 64, (512, 4096)) is None
        assert why_no_blocks(0, 64, 8, 64, (520,)) is not None

    @pytest.mark.parametrize(
        ("offset", "columns", "said"),
        [(0, 32, ""), (4, 32, "address"), (0, 15, "rows have 60"), (0, 33, "apart")],
    )
    def test_the_log_says_it(
        self, capfd: pytest.CaptureFixture[str], offset: int, columns: int, said: str
    ) -> None:
        config.log = True
        try:
            a = counting((20, columns), offset=offset)
            c = aligned((20, columns), offset=offset)
            scale[grid_of(a)](a, c)
        finally:
            del config.log
        text = capfd.readouterr().err
        assert ("`scale` runs without block messages: argument 0" in text) == bool(said)
        assert said in text
        assert np.array_equal(c, 2 * a)


class FakeDevice:
    def __init__(
        self, backend: str, kind: str, number: int = 0, has_fp64: bool = True
    ) -> None:
        self.backend = SimpleNamespace(name=backend)
        self.is_gpu, self.is_cpu = kind == "gpu", kind == "cpu"
        self.name, self.number = f"{backend} {kind}", number
        self.has_aspect_fp64, self.driver_version = has_fp64, "1.3"


def test_the_device_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    order = [("level_zero", "gpu"), ("opencl", "gpu"), ("opencl", "cpu")]
    others = [("cuda", "gpu"), ("opencl", "accelerator")]
    found = [FakeDevice(*each) for each in (*others, *order[::-1])]
    fake = SimpleNamespace(get_devices=lambda: found)
    monkeypatch.setattr(devices, "dpctl", lambda: fake)
    names = [device.name for device in devices.usable_devices()]
    assert names == [" ".join(each) for each in order]
    found[2:] = []
    with pytest.raises(LaunchError, match="found no device") as caught:
        devices.default_queue.__wrapped__()
    assert caught.value.code == "X0830"
    assert "only cuda gpu, opencl accelerator" in caught.value.notes[0]


@pytest.mark.filterwarnings("ignore::xetl.errors.EmulatedDeviceWarning")
@pytest.mark.parametrize(
    ("number", "width", "target"),
    [
        *((0x0BD5, 16, "pvc"), (0xE20B, 16, "bmg"), (0x64A0, 16, "bmg")),
        *((0xB080, 16, "bmg"), (0x56A0, 8, "opencl"), (0xE20B, None, "opencl")),
    ],
)
def test_targets_of_devices(
    monkeypatch: pytest.MonkeyPatch, number: int, width: int | None, target: str
) -> None:
    """By what their driver says of their units: Panther Lake (B080) has them, too."""
    utils = pytest.importorskip("dpctl.utils", reason="dpctl is not installed")
    known = {} if width is None else {"gpu_eu_simd_width": width}

    def info(device: Any) -> dict[str, int]:
        others = known if device.number == number else {"gpu_eu_simd_width": 8}
        return {"device_id": device.number, **others}

    monkeypatch.setattr(utils, "intel_device_info", info)
    assert devices._target_of(FakeDevice("level_zero", "gpu", number))[0] == target
    assert devices._target_of(FakeDevice("opencl", "cpu", number))[0] == "opencl"
    for kind in ("gpu", "cpu"):
        old = FakeDevice("opencl", kind, 0x56A0, has_fp64=False)
        assert devices._target_of(old)[0] == "opencl_fp32"


def test_a_gpu_that_is_emulated_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = devices.default_queue().sycl_device
    missing = Capabilities(("2-D blocks",), "bmg", "width of its units")
    monkeypatch.setattr(devices, "capabilities_of", lambda device: missing)
    fields = ("has_aspect_fp64", "has_aspect_fp16", "filter_string", "driver_version")
    fields += ("local_mem_size", "max_work_group_size", "global_mem_size", "backend")
    fields += ("has_aspect_usm_system_allocations",)
    fake = SimpleNamespace(**{name: getattr(real, name) for name in fields})
    fake.name, fake.is_gpu, fake.is_cpu = "Arc A770 ", True, False
    fake.max_compute_units = 160
    said = "`Arc A770` has no 2-D blocks, or.*driver 1.3 is old, update it: `sudo apt"
    fake.driver_version = "1.3"
    with pytest.warns(EmulatedDeviceWarning, match=said):
        found = devices.facts_of.__wrapped__(fake)
    assert found.cores == 20


def test_without_dpctl(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(devices, "import_whole", missing)
    with pytest.raises(LaunchError, match="No module named 'dpctl'") as caught:
        devices.dpctl.__wrapped__()
    assert caught.value.code == "X0830"
    assert "pip install dpctl intel-opencl-rt" in (caught.value.help or "")


@xetile.kernel
def asks_only(A, n):
    xetile.prefetch_tile(xetile.init_tile(A, [n, 0], (8, 16)))


def test_an_array_that_is_only_asked_for_may_be_of_any_rows() -> None:
    """A prefetch is a message too: rows of 41 bytes take the other kernel."""
    asks_only[1](np.zeros((7, 41), np.uint8), 0)
