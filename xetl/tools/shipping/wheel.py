"""A Python wheel of compiled kernels: it needs NumPy, and neither xetl nor a compiler.

The format is PEP 427; a wheel made twice of the same kernels has the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from xetl import __version__

_TAG = "py3-none-manylinux_2_28_x86_64"
"""No file in it is linked; the code calls functions of glibc's libm and libmvec."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)

_METADATA = """\
Metadata-Version: 2.1
Name: {package}
Version: {version}
Summary: Kernels compiled by xetl {xetl}: {names}
Requires-Python: >=3.10
Requires-Dist: numpy

{listed}
"""

_WHEEL = f"""\
Wheel-Version: 1.0
Generator: xetl ({__version__})
Root-Is-Purelib: false
Tag: {_TAG}
"""


def wheel_name(package: str, version: str) -> str:
    """The name that pip wants the file to have."""
    return f"{package}-{version}-{_TAG}.whl"


def wheel(
    package: str,
    version: str,
    kernels: Sequence[Mapping[str, Any]],
    files: Mapping[str, bytes],
) -> bytes:
    """Make the wheel.

    Args:
        package: the name by which it is installed and imported.
        version: of the package.
        kernels: facts about each kernel, JSON only, with its name as ``kernel``.
        files: code, and ``_runtime.py``, which launches it.
    """
    names = [each["kernel"] for each in kernels]
    info = f"{package}-{version}.dist-info"
    listed = "\n".join(f"* {_call(each)}" for each in kernels)
    about = {
        "package": package,
        "version": version,
        "xetl": __version__,
        "names": ", ".join(names),
        "listed": listed,
    }
    whole = {
        f"{package}/__init__.py": _init(names, listed).encode(),
        f"{package}/kernels.json": _json({each["kernel"]: each for each in kernels}),
        **{f"{package}/{name}": content for name, content in files.items()},
        f"{info}/METADATA": _METADATA.format(**about).encode(),
        f"{info}/WHEEL": _WHEEL.encode(),
    }
    record = [f"{name},{_digest(data)},{len(data)}" for name, data in whole.items()]
    record.append(f"{info}/RECORD,,")
    whole[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in whole.items():
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return stream.getvalue()


def _init(names: Sequence[str], listed: str) -> str:
    lines = [f"{name} = load({name!r})" for name in names]
    return "\n".join([
        f'"""Kernels compiled by xetl {__version__}.\n\n{listed}\n"""',
        "",
        "from ._runtime import load",
        "",
        f"__all__ = {list(names)!r}",
        "",
        *lines,
        "",
    ])  # fmt: skip


def _call(facts: Mapping[str, Any]) -> str:
    """How a kernel is called, with the dtypes of its arguments."""
    named = [
        f"{each['name']}: {each.get('dtype', each['kind'])}"
        + (f"[{each['rank']}-D]" if each["kind"] == "array" else "")
        for each in facts["arguments"]
    ]
    grid = "" if facts["grid"] is not None else "[grid]"
    return f"{facts['kernel']}{grid}({', '.join(named)})"


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _digest(data: bytes) -> str:
    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"sha256={found.decode().rstrip('=')}"
