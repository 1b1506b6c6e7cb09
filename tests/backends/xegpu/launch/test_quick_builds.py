"""What OpenCL's driver for CPUs is told in tests: that it need not optimise."""

from __future__ import annotations

import subprocess
import sys

import pytest

from xetl_xegpu.build_options import FOR_CPUS


def test_kernels_are_not_optimised() -> None:
    assert FOR_CPUS == ["-cl-opt-disable"]


@pytest.mark.slow
def test_those_of_slow_tests_are() -> None:
    assert FOR_CPUS == []


@pytest.mark.optimised
def test_others_may_ask_for_it() -> None:
    assert FOR_CPUS == []


def test_those_of_users_are() -> None:
    program = "from xetl_xegpu.build_options import FOR_CPUS; assert FOR_CPUS == []"
    subprocess.run([sys.executable, "-c", program], check=True)
