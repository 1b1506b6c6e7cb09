"""A kernel as a relocatable object and a C header: for programs without Python.

The object is what LLVM gives, not our image: any linker takes it. It has one global
function, ``NAME_kernel(slots)`` (docs/design/0001-seams.md, section 4), and needs the
C library and libm. The header makes a plain C function of it.
"""

from __future__ import annotations

import importlib
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xetl.errors import LaunchError
from xetl.export import Export
from xetl.language.signature import ArrayParam, ConstParam, Signature
from xetl_cpu.build import llvm_text, optimised
from xetl_cpu.c_header import c_header
from xetl_cpu.emit.kernel import KERNEL
from xetl_cpu.emit.log import log_operations
from xetl_cpu.image import build_image
from xetl_cpu.launch.slots import FIRST_ARGUMENT
from xetl_cpu.pipeline import IMPORTS, stored_arguments
from xetl_cpu.targets import INLINE, Target, find_target, target_machine

_ASSUMPTIONS = (
    "x86-64, LLVM's `cpu` with the `features`; calling convention of System V (Linux)",
    "strides are in elements; what `dimension_of_stride_1` names has stride 1",
    "every element lies on a multiple of its size",
    "arrays that are written share no memory with other arguments, nor their own"
    " elements with each other",
    "the workspace, if one is given, is used by one launch at a time",
)


def export(module: ModuleOp, signature: Signature, target: str, name: str) -> Export:
    """The object, the header and the facts of a module at the ``loops`` stage.

    Raises:
        LaunchError: the kernel prints or asserts, which only a launch can show.
    """
    _check(module, name)
    machine = find_target(target)
    symbol = f"{name}_kernel"
    text = llvm_text(module, machine)
    uses_tiles = "@llvm.x86.ldtilecfg" in text.replace('"', "")
    code = _object(text, machine, symbol)
    needed = sorted(build_image(code, [symbol], IMPORTS).imports)
    stored = stored_arguments(module)
    facts = {
        "format": "ELF relocatable object, position-independent",
        "function": symbol,
        "abi": f"int64_t {symbol}(int64_t *slots)",
        "slots": _slots(signature),
        "needs": needed,
        "libraries": ["m", *(["xetl_xsmm"] if _calls_xsmm(needed) else [])],
        **_processor(machine),
    }
    header = c_header(name, signature, stored, uses_tiles=uses_tiles)
    return Export(
        code, ".o", header, facts, [*_ASSUMPTIONS, *_of_target(machine, uses_tiles)]
    )


def _check(module: ModuleOp, name: str) -> None:
    if log_operations(module):
        raise LaunchError(
            f"`{name}` prints or asserts, which only a launch from Python can show",
            code="X0840",
            help="compile it without `device_print`, `device_assert` and `assert`",
        )


def _object(text: str, machine: Target, symbol: str) -> bytes:
    module = optimised(text, machine)
    # Several kernels may be linked into one program.
    module.get_function(KERNEL).name = symbol
    return target_machine(machine).emit_object(module)


def _calls_xsmm(needed: list[str]) -> bool:
    return any(name.startswith("xsmm_") for name in needed)


def _slots(signature: Signature) -> dict[str, int]:
    """Where each argument begins among the slots."""
    at, found = FIRST_ARGUMENT, dict[str, int]()
    for param in signature.params:
        if not isinstance(param, ConstParam):
            found[param.name] = at
            at += 1 + 2 * param.rank if isinstance(param, ArrayParam) else 1
    return found


def _processor(machine: Target) -> dict[str, Any]:
    """LLVM's name of the processor and the features the code may use."""
    if machine.name != "host":
        features = sorted(machine.requires)
        return {"cpu": machine.cpu, "features": features}
    binding: Any = importlib.import_module("llvmlite.binding")
    found: dict[str, bool] = binding.get_host_cpu_features()
    features = sorted(name for name, is_there in found.items() if is_there)
    return {"cpu": binding.get_host_cpu_name(), "features": features}


def _of_target(machine: Target, uses_tiles: bool) -> list[str]:
    found: list[str] = []
    if machine.name == "host":
        found.append(
            "compiled for the processor of this machine: name a target"
            " such as avx2 for others"
        )
    if uses_tiles:
        found.append("no thread holds an AMX tile configuration of its own at the call")
    if machine.calls != INLINE:
        found.append(f"products are calls of {machine.calls}")
    return found
