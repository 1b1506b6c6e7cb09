"""Options for drivers and the offline compiler when they build a kernel for a GPU.

Sources: OpenCL 3.0, "Compiler options"; cl_intel_256_grf_per_thread; Level Zero, "Build
options". Both forms of the rounding option were seen to change the code (ocloc 26.27).
"""

from __future__ import annotations

_ROUNDING = "fp32-correctly-rounded-divide-sqrt"
"""Quotients and roots are correctly rounded, as the language demands. Without this
option errors may be 2.5 and 3 units in the last place."""

UNOPTIMISED = "-cl-opt-disable"
"""The option that turns optimisation off."""

FOR_CPUS: list[str] = []
"""Options for OpenCL's driver for CPUs. It rounds correctly and has no register file.

The list is empty for users. Tests add an option that turns optimisation off.
"""


def build_options(*, is_level_zero: bool, large_registers: bool) -> str:
    """Return the options of a build.

    Args:
        is_level_zero: options for Level Zero; otherwise for OpenCL. ocloc takes both.
        large_registers: give each thread 256 registers, with half as many threads.
    """
    prefix = "-ze" if is_level_zero else "-cl"
    options = [f"{prefix}-{_ROUNDING}"]
    if large_registers:
        large = (
            "opt-large-register-file" if is_level_zero else "intel-256-GRF-per-thread"
        )
        options.append(f"{prefix}-{large}")
    return " ".join(options)
