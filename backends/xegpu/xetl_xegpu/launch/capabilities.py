"""The capabilities of a GPU, as its driver reports them, and its target.

They are read from the extensions of OpenCL, also for a device that Level Zero drives:
one package of Intel has both drivers. [measured] `ocloc query CL_DEVICE_EXTENSIONS`
(26.27), which lists the extensions of the driver of that version: pvc, bmg, lnl, ptl,
nvl and cri have all of `CAPABILITIES`; dg2, mtl and arl have no 2-D block messages. If
OpenCL does not list the device, the width of its execution units by SYCL decides:
devices with 16 lanes have all.

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
"""What all targets that are not emulated need, with the name of its extension."""

_SIMD_WITH_BLOCKS = 16
"""Lanes of an execution unit: PVC, Xe2 and later; Alchemist to Arrow Lake have 8."""

_PONTE_VECCHIO = range(0x0BD0, 0x0BE0)
"""Numbers of PCI devices, https://dgpu-docs.intel.com/devices/hardware-table.html."""

_GENERATIONS = ((35, "cri"), (13, "bmg"), (0, "pvc"))
"""The least generation of each target; the first one that fits is taken. [measured]
`ocloc ids`: pvc 12.60, bmg 20.1, lnl 20.4, ptl 30.0, nvl-s 30.4, cri 35.11. No
extension says whether there are instructions for products of 8-bit floats; cri has
them."""

_GPU = 1 << 2  # CL_DEVICE_TYPE_GPU
_EXTENSIONS = 0x1030  # CL_DEVICE_EXTENSIONS
_VERSION, _NUMBER = 0x4250, 0x4251  # CL_DEVICE_IP_VERSION_INTEL, CL_DEVICE_ID_INTEL
_GENERATION_SHIFT = 22
_LIBRARY = "libOpenCL.so.1"


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a GPU.

    Attributes:
        missing: names of `CAPABILITIES` that it lacks.
        target: its target if nothing is missing.
        source: where the facts come from; for reports.
    """

    missing: tuple[str, ...]
    target: str
    source: str

    def __str__(self) -> str:
        """Return what the GPU has, what it lacks, and the source, for a report."""
        has = [name for name in CAPABILITIES if name not in self.missing]
        lacks = f"; no {', no '.join(self.missing)}" if self.missing else ""
        return f"{', '.join(has) or 'nothing'}{lacks} ({self.source})"


def capabilities_of(device: Any) -> Capabilities:
    """Return the capabilities of a GPU of dpctl; GPUs of other makers have none."""
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
    """Return the capabilities by the extensions and the version of OpenCL."""
    names = extensions.split()
    missing = tuple(name for name, says in CAPABILITIES.items() if says not in names)
    generation = version >> _GENERATION_SHIFT
    target = next(name for least, name in _GENERATIONS if generation >= least)
    return Capabilities(missing, target, "OpenCL extensions")


@cache
def _said_by_opencl() -> Mapping[int, tuple[str, int]]:
    """Return extensions and version of instructions of each GPU, by its PCI number."""
    said = dict[int, tuple[str, int]]()
    with suppress(OSError):  # there is no OpenCL
        for each in opencl_devices(_GPU):
            extensions = each.ask(_EXTENSIONS).rstrip(b"\0").decode(errors="replace")
            number, version = (
                int.from_bytes(each.ask(what), "little") for what in (_NUMBER, _VERSION)
            )
            said[number] = extensions, version
    return said


def opencl_devices(kind: int) -> Iterator[OpenclDevice]:
    """Yield the devices of all drivers of OpenCL.

    Raises:
        OSError: the library that finds drivers is not installed.
    """
    library = ctypes.CDLL(_LIBRARY)
    for platform in _handles(library.clGetPlatformIDs):
        of_kind = ctypes.c_void_p(platform), ctypes.c_uint64(kind)
        for device in _handles(library.clGetDeviceIDs, *of_kind):
            yield OpenclDevice(library, device)


def _handles(list_all: Any, *args: Any) -> list[int]:
    """Return the handles that a function of OpenCL lists; [] if it fails."""
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
        """Return the value of a query; empty if the device does not support it."""
        ask = self.library.clGetDeviceInfo
        args = ctypes.c_void_p(self.handle), ctypes.c_uint32(what)
        size = ctypes.c_size_t()
        if ask(*args, ctypes.c_size_t(0), None, ctypes.byref(size)):
            return b""
        room = ctypes.create_string_buffer(size.value)
        return b"" if ask(*args, size, room, None) else room.raw
