"""What drivers and the offline compiler are told when they build a kernel for a GPU.

Sources: OpenCL 3.0, "Compiler options"; cl_intel_256_grf_per_thread; Level Zero, "Build
options"; both prefixes of the first one were seen to change the code (ocloc 26.27).
"""

from __future__ import annotations

_ROUNDING = "fp32-correctly-rounded-divide-sqrt"
"""Quotients and roots as the language has them: else they are 2.5 and 3 units off."""

FOR_CPUS: list[str] = []
"""Options for OpenCL's driver for CPUs, which is exact and knows no registers.

Users have none; tests add that kernels need not be optimised.
"""


def build_options(*, is_level_zero: bool, large_registers: bool) -> str:
    """Options of a build.

    Args:
        is_level_zero: whether Level Zero reads them (ocloc does both), else OpenCL.
        large_registers: 256 registers a thread, half as many threads.
    """
    prefix = "-ze" if is_level_zero else "-cl"
    options = [f"{prefix}-{_ROUNDING}"]
    if large_registers:
        large = (
            "opt-large-register-file" if is_level_zero else "intel-256-GRF-per-thread"
        )
        options.append(f"{prefix}-{large}")
    return " ".join(options)
