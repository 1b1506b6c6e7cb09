"""SPIR-V to the machine code of a GPU, by Intel's offline compiler.

Kernels run without it; it checks code for GPUs that the machine does not have. The
facts of each kernel (registers, spills, shared memory, barriers) come from the notes of
the binary, `.ze_info`; the assembly comes from the disassembler of the same tool. A
builtin that the compiler does not know is not an error: it becomes a call of an
undefined function. So `xetl_xegpu.offline.isa` counts calls.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from signal import Signals

from xetl.errors import LaunchError
from xetl.runtime.cache import cache_folder
from xetl.settings import config
from xetl_xegpu.build_options import build_options

SETUP = "python -m xetl_xegpu.offline.setup"
"""The command that fetches the compiler, and the tools of SPIR-V that tests use."""

_SECONDS = 120
"""The timeout of a compiler, longer than any kernel takes."""


def default_folder() -> Path:
    """Return the folder of `setup` for the tools, beside the cache of kernels."""
    return cache_folder() / "ocloc"


def find_ocloc() -> Path | None:
    """Return the offline compiler of the setting, of PATH or of `setup`, or None.

    Raises:
        LaunchError: the setting names no program.
    """
    if config.ocloc is not None:
        if not os.access(config.ocloc, os.X_OK) or config.ocloc.is_dir():
            problem = f"XETL_OCLOC names no program: {config.ocloc}"
            raise LaunchError(problem, "X0840", f"unset it, or get one: `{SETUP}`")
        return config.ocloc
    return find_tool("ocloc")


def find_tool(name: str) -> Path | None:
    """Return a tool of PATH, or one that `setup` has fetched, or None."""
    found = shutil.which(name) or shutil.which(name, path=default_folder())
    return None if found is None else Path(found)


def need_ocloc() -> Path:
    """Return the offline compiler.

    Raises:
        LaunchError: it is not installed.
    """
    found = find_ocloc()
    if found is None:
        problem = "Intel's offline compiler `ocloc` is not installed"
        help_ = f"run `{SETUP}` (Debian, 35 MB, no root), or set XETL_OCLOC"
        raise LaunchError(problem, "X0840", help_)
    return found


def run(
    command: Sequence[str | Path], folder: Path, *, is_compiler: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a tool that prints text in a folder, a compiler for at most two minutes.

    Raises:
        LaunchError: it cannot be started, or does not end.
    """
    try:
        return subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS if is_compiler else None,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        advice = f"get another one: `{SETUP}`"
        if isinstance(error, subprocess.TimeoutExpired):
            advice = "try again when the machine is less busy, or take smaller tiles"
        problem = f"`{command[0]}` does not work: {error}"
        raise LaunchError(problem, "X0840", advice) from None


DEVICES: Mapping[str, str] = {"pvc": "pvc", "bmg": "bmg", "cri": "cri"}
"""Our targets, each with the compiler's name of the GPU."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """The compiler's facts of one kernel.

    Attributes:
        registers: general registers of a thread, 128 or 256.
        spill_bytes: bytes of a thread that were spilled, 0 at best.
        private_bytes: bytes of a thread in memory, spills included.
        slm_bytes: bytes of shared local memory of a workgroup.
        barriers: how many barriers it uses, named ones and the usual one.
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
        kernels: the facts of each kernel, by name.
        assembly: the text of each kernel, by name.
        binary: the file that a driver loads, with code for this GPU only.
    """

    kernels: Mapping[str, KernelFacts]
    assembly: Mapping[str, str]
    log: str
    binary: bytes = b""


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
            raise refused(target, done.stdout, -done.returncode)
        command = [ocloc, "disasm", "-file", "kernel.bin", "-device", device]
        shown = run([*command, "-dump", "parts"], folder)
        if not (folder / "parts" / ".ze_info").exists():
            raise refused(target, shown.stdout)
        found = _read(folder / "parts", done.stdout)
        return replace(found, binary=(folder / "kernel.bin").read_bytes())


def refused(target: str, log: str, killer: int = 0) -> LaunchError:
    """Return the error that the compiler refused a module.

    The module is wrong, or the compiler is too old.

    Args:
        killer: the signal that ended the compiler, if greater than 0.
    """
    lines = [line for line in log.splitlines() if line.strip()]
    did = f"was ended by {Signals(killer).name} on" if killer > 0 else "refused"
    return LaunchError(
        f"Intel's offline compiler {did} a kernel for `{target}`",
        code="X0841",
        notes=lines[-6:],
        help="compilers before 24.x do not know these builtins: "
        "`python -m xetl_xegpu.offline.setup` gets a current one",
    )


_TEXT = ".text."
_NO_KERNEL = "Intel_Symbol_Table_Void_Program"
"""An entry among the kernels if there are functions."""


def _read(parts: Path, log: str) -> Compiled:
    texts = {
        file.name.removeprefix(_TEXT).removesuffix(".asm"): file.read_text("utf-8")
        for file in sorted(parts.glob(f"{_TEXT}*.asm"))
    }
    kernels = read_ze_info((parts / ".ze_info").read_text("utf-8"))
    return Compiled(kernels, {name: texts[name] for name in kernels}, log)


def read_ze_info(text: str) -> dict[str, KernelFacts]:
    """Return the facts of each kernel from the notes of a binary.

    The notes are YAML of a fixed form: lists of kernels, two spaces a level.
    Source: Intel's compute runtime, "zebin", `.ze_info`.
    """
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
    return {
        name: KernelFacts(*(int(found.get(each, "0")) for each in _ENTRIES))
        for name, found in kernels.items()
    }


_ENTRIES = (
    *("grf_count", "spill_size", "private_size", "slm_size", "barrier_count"),
    "simd_size",
)
"""The entries of the `execution_env` of a kernel, in the order of `KernelFacts`."""
