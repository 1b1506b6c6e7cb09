"""What a GPU can do, by what its driver says, and the target that follows.

The extensions of OpenCL say it, also of a device that Level Zero drives: one package of
Intel brings both drivers. [measured] `ocloc query CL_DEVICE_EXTENSIONS` (26.27), which
lists what the driver of that version says: pvc, bmg, lnl, ptl, nvl and cri have all of
`CAPABILITIES`; dg2, mtl and arl have no 2-D block messages. Where OpenCL knows no such
device, the width of its execution units decides, as SYCL says it: 16 lanes have all.

Sources: OpenCL 3.0, "clGetDeviceInfo"; cl_intel_device_attribute_query.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from xetl.imports import import_whole

CAPABILITIES: Mapping[str, str] = {
    "2-D blocks": "cl_intel_subgroup_2d_block_io",
    "DPAS": "cl_intel_subgroup_matrix_multiply_accumulate",
    "DPAS of tf32": "cl_intel_subgroup_matrix_multiply_accumulate_tf32",
    "conversions of bf16": "cl_intel_bfloat16_conversions",
    "split barriers": "cl_intel_split_work_group_barrier",
    "atomic floats": "cl_ext_float_atomics",
}
"""What the targets that are not emulated take for granted, and how drivers call it."""

_SIMD_WITH_BLOCKS = 16
"""Lanes of an execution unit: PVC, Xe2 and later; Alchemist to Arrow Lake have 8."""

_PONTE_VECCHIO = range(0x0BD0, 0x0BE0)
"""Numbers of PCI devices, https://dgpu-docs.intel.com/devices/hardware-table.html."""

_GENERATIONS = ((35, "cri"), (13, "bmg"), (0, "pvc"))
"""The first target is it: of instructions that are as new at least. [measured] `ocloc
ids`: pvc 12.60, bmg 20.1, lnl 20.4, ptl 30.0, nvl-s 30.4, cri 35.11.  No extension says
that products of floats of eight bits are instructions; cri has them."""

_GPU = 1 << 2  # CL_DEVICE_TYPE_GPU
_EXTENSIONS = 0x1030  # CL_DEVICE_EXTENSIONS
_VERSION, _NUMBER = 0x4250, 0x4251  # CL_DEVICE_IP_VERSION_INTEL, CL_DEVICE_ID_INTEL
_GENERATION_SHIFT = 22
_LIBRARY = "libOpenCL.so.1"


@dataclass(frozen=True)
class Capabilities:
    """What is known of a GPU.

    Attributes:
        missing: names of `CAPABILITIES` that it has not.
        target: what it takes if it has all.
        source: who says so; for people.
    """

    missing: tuple[str, ...]
    target: str
    source: str

    def __str__(self) -> str:
        """For a report: what it has, what it has not, and by whom."""
        has = [name for name in CAPABILITIES if name not in self.missing]
        lacks = f"; no {', no '.join(self.missing)}" if self.missing else ""
        return f"{', '.join(has) or 'nothing'}{lacks} ({self.source})"


def capabilities_of(device: Any) -> Capabilities:
    """Of a GPU of dpctl; one of another maker has none."""
    info = import_whole("dpctl.utils").intel_device_info(device)
    number = info.get("device_id", 0)
    said = _said_by_opencl().get(number)
    if said is None:
        has_all = info.get("gpu_eu_simd_width") == _SIMD_WITH_BLOCKS
        missing = () if has_all else tuple(CAPABILITIES)
        target = "pvc" if number in _PONTE_VECCHIO else "bmg"
        return Capabilities(missing, target, "width of its units")
    return _read(*said)


def _read(extensions: str, version: int) -> Capabilities:
    """Of what OpenCL says."""
    names = extensions.split()
    missing = tuple(name for name, says in CAPABILITIES.items() if says not in names)
    generation = version >> _GENERATION_SHIFT
    target = next(name for least, name in _GENERATIONS if generation >= least)
    return Capabilities(missing, target, "OpenCL extensions")


@cache
def _said_by_opencl() -> Mapping[int, tuple[str, int]]:
    """Extensions and version of instructions of each GPU, by its number."""
    with suppress(OSError):  # there is no OpenCL
        return {
            _number(each, _NUMBER): (_text(each, _EXTENSIONS), _number(each, _VERSION))
            for each in opencl_devices(_GPU)
        }
    return {}


def opencl_devices(kind: int) -> Iterator[OpenclDevice]:
    """Those of all drivers; an OSError if there is no library that finds drivers."""
    library = ctypes.CDLL(_LIBRARY)
    for platform in _handles(library.clGetPlatformIDs):
        of_kind = ctypes.c_void_p(platform), ctypes.c_uint64(kind)
        for device in _handles(library.clGetDeviceIDs, *of_kind):
            yield OpenclDevice(library, device)


def _handles(list_all: Any, *args: Any) -> list[int]:
    """What a function of OpenCL lists; nothing where it fails."""
    count = ctypes.c_uint32()
    if list_all(*args, 0, None, ctypes.byref(count)):
        return []
    found = (ctypes.c_void_p * count.value)()
    return [] if list_all(*args, count, found, None) else list(found)


@dataclass(frozen=True)
class OpenclDevice:
    """A device of OpenCL."""

    library: Any
    handle: int

    def ask(self, what: int) -> bytes:
        """What it says of itself; nothing if it does not know the question."""
        ask = self.library.clGetDeviceInfo
        args = ctypes.c_void_p(self.handle), ctypes.c_uint32(what)
        size = ctypes.c_size_t()
        if ask(*args, ctypes.c_size_t(0), None, ctypes.byref(size)):
            return b""
        room = ctypes.create_string_buffer(size.value)
        return b"" if ask(*args, size, room, None) else room.raw


def _text(device: OpenclDevice, what: int) -> str:
    return device.ask(what).rstrip(b"\0").decode(errors="replace")


def _number(device: OpenclDevice, what: int) -> int:
    return int.from_bytes(device.ask(what), "little")
