"""Whether kernels can run here: on a GPU, or on the CPU through OpenCL."""

from __future__ import annotations

import pytest

from xetl.errors import LaunchError
from xetl_xegpu.launch import devices


def require() -> None:
    """Skip a test where there is no device."""
    try:
        devices.default_queue()
    except LaunchError as error:
        pytest.skip(f"there is no device: {error.message}")
