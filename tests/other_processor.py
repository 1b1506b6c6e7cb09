"""Run what is compiled for a processor that this machine is not, by software.

``XETL_TESTS_AS=avx512_bf16 pytest ...`` makes the host one with these instructions; the
name is one of `targets.TARGETS`.  Plans, loops and products are those of that
processor, and so is the LLVM IR, but for its intrinsics of x86, which become functions
that numba compiles; LLVM cuts vectors to what there is here.  So numbers are what they
would be there; times are not.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import llvmlite.binding as binding

from xetl_cpu import build, targets

WANTED = os.environ.get("XETL_TESTS_AS")

OF_THIS_MACHINE = {
    *("test_amx", "test_assembly", "test_entry", "test_native"),
    *("test_peak", "test_processes", "test_targets", "test_text_shortcut"),
}
"""Files of tests that look at machine code, at kept kernels or at the processor."""


def pretend_if_wanted() -> None:
    """Be, in this process, the processor that XETL_TESTS_AS names."""
    if WANTED is not None:
        pretend(targets.TARGETS[WANTED])


def pretend(target: targets.Target) -> None:
    """Be a processor of this target from now on; kernels of it cannot be kept."""
    os.environ["XETL_CACHE"] = "0"  # they hold addresses of this process
    model = f"{target.name} by software"
    info = {"model name": model, "flags": " ".join(target.requires)}
    here = targets.target_machine(targets.find_target("host"))
    for name in ("host_features", "_host_target", "host_machine", "host_fingerprint"):
        getattr(targets, name).cache_clear()
    targets._cpuinfo = lambda: info
    targets.find_family = lambda *_: target.machine
    targets.read_machine = lambda row: replace(row, cores=os.cpu_count() or 1)
    targets.tiles_are_permitted = cache(lambda: True)
    build.target_machine = targets.target_machine = cache(lambda _: here)
    # Numba takes a second, which no other tests wait for.
    from tests.software_instructions import by_software  # noqa: PLC0415 - see above

    parse = binding.parse_assembly
    binding.parse_assembly = lambda text, *context: parse(by_software(text), *context)
