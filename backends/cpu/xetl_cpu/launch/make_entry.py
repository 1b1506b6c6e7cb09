"""Writes `entry_code.py`: what LLVM makes of `entry.py`, as bytes.

The native entry is the same in every process and for every kernel, so it is compiled
when it changes, not when it is needed: that would be 18 ms of a process's first kernel.
After a change of `entry.py`, or of what `fastcall.py` says of the layouts:

    python -m xetl_cpu.launch.make_entry

A test makes the code anew and compares.
"""

from __future__ import annotations

import base64
import textwrap
from pathlib import Path
from typing import Any

import llvmlite.binding as _binding

from xetl_cpu.image import Image, build_image
from xetl_cpu.launch.entry import entry_text
from xetl_cpu.launch.fastcall import ENTRY

FILE = Path(__file__).with_name("entry_code.py")
_TEMPLATE = '''"""The machine code of `xetl_entry`, written by `make_entry.py`.

It is an `xetl_cpu.image.Image` in base 64.
"""

IMAGE = """
{image}
"""
'''

binding: Any = _binding


def entry_image() -> Image:
    """The machine code of `xetl_entry`, for any x86-64."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(
        cpu="x86-64", opt=2, reloc="pic", codemodel="small"
    )
    parsed = binding.parse_assembly(entry_text())
    parsed.verify()
    return build_image(machine.emit_object(parsed), [ENTRY])


def entry_module() -> str:
    """What `entry_code.py` should say."""
    image = base64.b64encode(entry_image().to_bytes()).decode()
    return _TEMPLATE.format(image=textwrap.fill(image, 88))


def main() -> None:
    """Write the file."""
    FILE.write_text(entry_module())


if __name__ == "__main__":
    main()
