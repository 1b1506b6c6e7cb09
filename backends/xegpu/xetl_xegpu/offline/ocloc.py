"""SPIR-V to the machine code of a GPU, by Intel's offline compiler.

What the compiler says of each kernel (registers, spills, shared memory, barriers) comes
from the notes of the binary, `.ze_info`; its code from the disassembler of the same
tool.  A builtin that the compiler does not know is no error of its own: it becomes a
call of nothing.  So `xetl_xegpu.offline.isa` counts calls.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xetl.errors import LaunchError
from xetl_xegpu.build_options import build_options
from xetl_xegpu.emit.words import with_one_hint_each

from .tools import find_spirv_tool, need_ocloc, run

DEVICES: Mapping[str, str] = {"pvc": "pvc", "bmg": "bmg"}
"""Our targets, and what the compiler calls the GPU."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the compiler says of one kernel.

    Attributes:
        registers: general registers a thread has, 128 or 256.
        spill_bytes: of a thread that did not fit in its registers, 0 at best.
        private_bytes: of a thread in memory, spills among them.
        slm_bytes: shared local memory of a workgroup.
        barriers: how many named ones it uses, the usual one too.
        simd: lanes of a subgroup.
    """

    registers: int
    spill_bytes: int
    private_bytes: int
    slm_bytes: int
    barriers: int
    simd: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code for one GPU.

    Attributes:
        kernels: what the compiler says of each, by name.
        assembly: text of each, by name.
        log: what the compiler printed.
    """

    kernels: Mapping[str, KernelFacts]
    assembly: Mapping[str, str]
    log: str


def compile_spirv(
    spirv: bytes, target: str, *, large_registers: bool = False
) -> Compiled:
    """Compile a SPIR-V module for a target of ours.

    Raises:
        LaunchError: there is no offline compiler, or it refused the module.
    """
    ocloc = need_ocloc()
    device = DEVICES[target]
    with tempfile.TemporaryDirectory(prefix="xetl-ocloc-") as name:
        folder = Path(name)
        (folder / "kernel.spv").write_bytes(spirv)
        command = [ocloc, "compile", "-spirv_input", "-file", "kernel.spv"]
        command += ["-device", device, "-output", "kernel", "-output_no_suffix"]
        options = build_options(is_level_zero=True, large_registers=large_registers)
        command += ["-options", options]
        done = run(command, folder)
        if done.returncode or not (folder / "kernel.bin").exists():
            raise refused(target, done.stdout)
        command = [ocloc, "disasm", "-file", "kernel.bin", "-device", device]
        shown = run([*command, "-dump", "parts"], folder)
        if not (folder / "parts" / ".ze_info").exists():
            raise refused(target, shown.stdout)
        return _read(folder / "parts", done.stdout)


def refused(target: str, log: str) -> LaunchError:
    """The compiler would not have a module: our mistake, or a compiler too old."""
    lines = [line for line in log.splitlines() if line.strip()]
    return LaunchError(
        f"Intel's offline compiler refused a kernel for `{target}`",
        code="X0841",
        notes=lines[-6:],
        help="compilers before 24.x do not know these builtins: "
        "`python -m xetl_xegpu.offline.setup` gets a current one",
    )


def validate(spirv: bytes) -> str | None:
    """What spirv-val finds wrong with a module; None: nothing.

    Raises:
        LaunchError: there is no spirv-val.
    """
    tool = find_spirv_tool("spirv-val")
    if tool is None:
        need_ocloc()
        raise LaunchError(
            "the validator `spirv-val` is not installed",
            code="X0840",
            help="it comes with SPIRV-Tools: apt-get install spirv-tools",
        )
    with tempfile.TemporaryDirectory(prefix="xetl-spirv-val-") as name:
        folder = Path(name)
        (folder / "kernel.spv").write_bytes(_checkable(spirv))
        done = run([tool, "kernel.spv"], folder)
    return done.stdout.strip() if done.returncode else None


def _checkable(spirv: bytes) -> bytes:
    """What the validator understands of a module; of what is none, all."""
    try:
        return with_one_hint_each(spirv)
    except ValueError:
        return spirv


_TEXT = ".text."
_NO_KERNEL = "Intel_Symbol_Table_Void_Program"
"""Stands among the kernels if there are functions."""


def _read(parts: Path, log: str) -> Compiled:
    texts = {
        file.name.removeprefix(_TEXT).removesuffix(".asm"): file.read_text("utf-8")
        for file in sorted(parts.glob(f"{_TEXT}*.asm"))
    }
    kernels = read_ze_info((parts / ".ze_info").read_text("utf-8"))
    return Compiled(kernels, {name: texts[name] for name in kernels}, log)


def read_ze_info(text: str) -> dict[str, KernelFacts]:
    """The facts of each kernel in the notes of a binary.

    The notes are YAML of a fixed form: lists of kernels, two spaces a level.
    Source: Intel's compute runtime, "zebin", `.ze_info`.
    """
    environments = _environments(text)
    return {name: _facts(found) for name, found in environments.items()}


def _environments(text: str) -> dict[str, dict[str, str]]:
    """The entries of the `execution_env` of each kernel."""
    kernels: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    section = part = ""
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        key, _, value = line.strip().removeprefix("- ").partition(":")
        if depth == 0:
            section = key
        elif section == "kernels" and depth == 2:
            current = kernels.setdefault(value.strip().strip("'"), {})
        elif section == "kernels" and depth == 4:
            part = key
        elif section == "kernels" and part == "execution_env":
            current[key] = value.strip()
    kernels.pop(_NO_KERNEL, None)
    return kernels


def _facts(found: Mapping[str, str]) -> KernelFacts:
    def number(name: str) -> int:
        return int(found.get(name, "0"))

    return KernelFacts(
        registers=number("grf_count"),
        spill_bytes=number("spill_size"),
        private_bytes=number("private_size"),
        slm_bytes=number("slm_size"),
        barriers=number("barrier_count"),
        simd=number("simd_size"),
    )
