"""Whether kernels can run here: on a GPU, or on the CPU through OpenCL."""

from __future__ import annotations

import pytest

from xetl.errors import LaunchError
from xetl_xegpu.build_options import FOR_CPUS, UNOPTIMISED
from xetl_xegpu.launch import devices

is_left_out = False
"""Whether tests were asked for without those on a device (tests/conftest.py)."""


def require(backend: str = "xegpu") -> None:
    """Skip a test of this backend where there is no device."""
    if backend != "xegpu":
        return
    if is_left_out:
        pytest.skip("--targets does not name `opencl`")
    try:
        devices.default_queue()
    except LaunchError as error:
        pytest.skip(f"there is no device: {error.message}")


def build_quickly(*, quickly: bool) -> None:
    """Choose whether the driver for CPUs leaves optimising out from now on.

    A build takes a half to a sixth of the time then.
    """
    FOR_CPUS[:] = [UNOPTIMISED] if quickly else []
