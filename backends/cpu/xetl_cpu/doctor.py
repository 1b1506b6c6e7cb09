"""The findings of `xetl doctor` about the processor, its threads and its libraries."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

from xetl.devices import DEVICES
from xetl.errors import LaunchError
from xetl.findings import Finding
from xetl.settings import config
from xetl_cpu import native, targets
from xetl_cpu.launch.threads import (
    WORKQUEUE,
    ThreadLayer,
    allowed_threads,
    thread_layer,
)
from xetl_cpu.library.native_build import system_root
from xetl_cpu.library.serve import UnusableLibraryError, find_library
from xetl_cpu.machine import FAMILIES
from xetl_cpu.targets import (
    INLINE,
    TARGETS,
    Target,
    UnknownTargetError,
    find_target,
    host_features,
    host_machine,
    processor_model,
)

_AMX_PERMISSION = "arch_prctl(ARCH_REQ_XCOMP_PERM)"

_INSTRUCTIONS = {
    "avx2": "AVX2",
    "fma": "FMA",
    "avx512f": "AVX-512",
    "avx512vnni": "AVX512-VNNI",
    "avx512bf16": "AVX512-BF16",
    "avx512fp16": "AVX512-FP16",
    "amxtile": "AMX",
    "amxbf16": "AMX-BF16",
    "amxint8": "AMX-INT8",
    "amxfp16": "AMX-FP16",
}
"""The features that are reported, by our names of processor features."""


def examine() -> list[Finding]:
    """Return the findings, in the order in which they are printed."""
    return [
        _processor(),
        _memory(),
        *map(_target, TARGETS.values()),
        _host(),
        *_forced_target(),
        _amx(),
        _threads(),
        *_native(),
        _products(),
    ]


def _processor() -> Finding:
    has = [name for each, name in _INSTRUCTIONS.items() if each in host_features()]
    return Finding("processor", f"{processor_model()}: {', '.join(has) or 'no AVX2'}")


def _memory() -> Finding:
    """Report the facts that the blocking of products is derived from."""
    machine = host_machine()
    levels = zip(("L1", "L2", "L3"), (machine.l1, machine.l2, machine.l3))
    caches = ", ".join(
        f"{name} {_size(cache.size)} {cache.ways}-way"
        + (f" for {cache.cores} cores" if cache.cores > 1 else "")
        for name, cache in levels
    )
    is_measured = machine.costs != FAMILIES[machine.family].costs
    costs = f"costs {'measured here' if is_measured else f'of `{machine.family}`'}"
    text = f"{caches}; {machine.nodes} node(s); {costs}; "
    if machine.huge_page:
        text += f"huge pages of {_size(machine.huge_page)}"
        return Finding("caches", text)
    fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
    return Finding("caches", f"{text}no huge pages", "note", fix)


def _size(count: int) -> str:
    """Return bytes in the largest unit that divides them."""
    for unit, size in (("MB", 1 << 20), ("KB", 1 << 10)):
        if count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"


def _target(target: Target) -> Finding:
    topic = f"target {target.name}"
    missing = sorted(target.requires - host_features())
    if missing:
        text = f"does not run here: the processor lacks {', '.join(missing)}"
        if target.runs_emulated:
            text += "; tile instructions are emulated in this process"
        return Finding(topic, text, "note")
    if not target.runs_here:
        text = f"does not run here: Linux refuses tiles, {_AMX_PERMISSION}"
        return Finding(topic, text, "note", "ask for Linux 5.16 or newer")
    return Finding(topic, "runs here")


def _host() -> Finding:
    """Report what launches without a target are compiled for."""
    best = [each.name for each in TARGETS.values() if each.runs_here]
    if not best:
        text = "has no AVX2 and FMA: no target fits this processor"
        return Finding("target host", text, "problem", "set XETL_BACKEND=reference")
    return Finding("target host", f"this processor, with the kernels of `{best[-1]}`")


def _forced_target() -> Iterator[Finding]:
    if config.target is None:
        return
    name = config.target
    topic = "XETL_TARGET"
    try:
        target = find_target(name)
    except UnknownTargetError as error:
        if name not in DEVICES:  # those of the GPU's backend
            yield Finding(topic, error.message, "problem", "unset it")
        return
    if target.runs_here:
        yield Finding(topic, f"all launches are compiled for `{name}`")
    elif target.runs_emulated:
        yield Finding(topic, f"`{name}` is emulated in this process", "note")
    else:
        text = f"`{name}` is forced, but does not run here"
        yield Finding(topic, text, "problem", "unset it, or set XETL_TARGET=host")


def _amx() -> Finding:
    has = "amxtile" in host_features()
    if not has:
        emulated = (
            "; a handler of SIGILL is there" if targets.tiles_are_emulated() else ""
        )
        return Finding("AMX", f"the processor has none{emulated}", "note")
    if targets.tiles_are_permitted():
        return Finding("AMX", f"permitted by Linux, {_AMX_PERMISSION}")
    text = f"Linux refuses the permission, {_AMX_PERMISSION}"
    return Finding("AMX", text, "note")


def _threads() -> Finding:
    given = allowed_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is said here
        layer = thread_layer()
    text = f"{given.count} ({given.reason}); {_described(layer)}"
    if layer.name == WORKQUEUE:
        fix = "apt-get install libgomp1, or pip install tbb"
        text += ", which takes 0.1 ms to wake for each launch"
        return Finding("threads", text, "note", fix)
    if layer.name == "serial" and given.count > 1:
        fix = "pip install --force-reinstall numba"
        return Finding("threads", f"{text}: no pool of numba's loads", "problem", fix)
    asked = os.environ.get("NUMBA_THREADING_LAYER", "")
    if asked in ("omp", "tbb", WORKQUEUE) and layer.name not in (asked, "serial"):
        fix = {"tbb": "pip install tbb", "omp": "apt-get install libgomp1"}.get(asked)
        text += f"; NUMBA_THREADING_LAYER={asked} cannot be loaded"
        return Finding("threads", text, "problem", fix)
    return Finding("threads", text)


def _described(layer: ThreadLayer) -> str:
    if layer.name == "serial":
        return "kernels run on the thread that launches them"
    return f"numba's layer `{layer.name}`"


def _native() -> Iterator[Finding]:
    """Report the shim between kernels and libxsmm."""
    status = native.status()
    if native.xsmm_shim() is not None:
        about = native.xsmm_description()
        yield Finding("native shim", f"{status}; {about}")
        return
    root = system_root()
    if root is not None:
        about = f"a libxsmm is in {root}: XETL_XSMM=libxsmm builds what reaches it"
        yield Finding("native shim", f"{status}; {about}")
        return
    fix = "apt-get install libxsmm-dev cmake gcc, then set XETL_XSMM=libxsmm"
    status += "; only XETL_XSMM=libxsmm needs it"
    yield Finding("native shim", status, "note", fix)


def _products() -> Finding:
    """Report which code computes matrix products, by ``XETL_XSMM``."""
    topic = "products"
    try:
        mode = config.xsmm
    except LaunchError as error:
        return Finding(topic, error.message, "problem")
    if mode == INLINE:
        return Finding(topic, "by xetl's own micro-kernels (XETL_XSMM=inline)")
    try:
        library = find_library(mode)
    except UnusableLibraryError as reason:
        text = f"by xetl's own micro-kernels: XETL_XSMM={mode} is unusable, {reason}"
        return Finding(topic, text, "problem", "unset XETL_XSMM, or give a path to it")
    tiles = ", which also sets up AMX" if library.serves_tiles else ""
    return Finding(topic, f"by XETL_XSMM={mode}{tiles} ({library.identity})")
