"""A kernel as a relocatable object and a C header: for programs without Python.

The object is LLVM's output, not our image: any linker takes it. It has one global
function, ``NAME_kernel(slots)`` (docs/design/0001-seams.md, section 4), and needs the C
library and libm. The header makes a plain C function of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.resources import files
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xetl import __version__
from xetl.dialects.base import operations_in
from xetl.errors import InternalError, cannot_be_shown
from xetl.findings import Export, letters_of_c
from xetl.imports import import_whole
from xetl.language.signature import RuntimeParam, ScalarParam, Signature
from xetl_cpu.build import llvm_text, optimised
from xetl_cpu.dialect import LogOp
from xetl_cpu.emit.kernel import KERNEL
from xetl_cpu.image import build_image
from xetl_cpu.launch import FIRST_ARGUMENT, slots_of
from xetl_cpu.pipeline import IMPORTS, stored_arguments
from xetl_cpu.targets import INLINE, Target, find_target, target_machine

_ASSUMPTIONS = (
    "x86-64, LLVM's `cpu` with the `features`; calling convention of System V (Linux)",
    "strides are in elements; sizes and strides are those that `needed` lists",
    "every element lies on a multiple of its size",
    "arrays that are written share no memory with other arguments, nor their own"
    " elements with each other",
    "the workspace, if one is given, is used by one launch at a time",
)


def export(module: ModuleOp, signature: Signature, target: str, name: str) -> Export:
    """Return the object, the header and the facts of a module at the ``loops`` stage.

    Raises:
        LaunchError: the kernel prints or asserts, which only a launch can show.
    """
    if operations_in(module, LogOp):
        raise cannot_be_shown(name)
    machine = find_target(target)
    symbol = f"{name}_kernel"
    text = llvm_text(module, machine)
    uses_tiles = "@llvm.x86.ldtilecfg" in text.replace('"', "")
    code = _object(text, machine, symbol)
    image = build_image(code, [symbol], IMPORTS)
    needed = sorted(image.imports)
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
    assumptions = [*_ASSUMPTIONS, *_of_target(machine, uses_tiles)]
    file = f"{name}.{machine.name}.img"
    variant = {
        "file": file,
        "target": machine.name,
        "features": _processor(machine)["features"],
        "tiles": uses_tiles,
    }
    return Export(
        code,
        ".o",
        header,
        facts,
        assumptions,
        stored=stored,
        variant={} if _calls_xsmm(needed) else variant,
        wheel_files={file: image.to_bytes(), **_runtime()},
    )


def _runtime() -> dict[str, bytes]:
    """Return the files that launch code from a wheel; they import no others of ours."""
    found: dict[str, bytes] = {}
    for name, line, instead in _COPIED:
        text = files("xetl_cpu").joinpath(f"{name}.py").read_text("utf-8")
        if text.count(line) != 1:
            raise InternalError(f"`{name}.py` does not import what it did: {line}")
        found[f"_{name}.py"] = text.replace(line, instead).encode()
    found["_runtime.py"] = found.pop("_shipped.py")
    return found


_COPIED = (
    ("image", "from xetl.errors import InternalError", "InternalError = RuntimeError"),
    ("shipped", "from xetl_cpu.image import", "from ._image import"),
)
"""Files without their folders, and the import line to replace."""


def _object(text: str, machine: Target, symbol: str) -> bytes:
    module = optimised(text, machine)
    # The symbol is unique: several kernels may be linked into one program.
    module.get_function(KERNEL).name = symbol
    return target_machine(machine).emit_object(module)


def _calls_xsmm(needed: list[str]) -> bool:
    return any(name.startswith("xsmm_") for name in needed)


def _slots(signature: Signature) -> dict[str, int]:
    """Return the first slot of each argument."""
    at, found = FIRST_ARGUMENT, dict[str, int]()
    for param in signature.runtime.values():
        found[param.name] = at
        at += slots_of(param)
    return found


def _processor(machine: Target) -> dict[str, Any]:
    """Return LLVM's name of the processor, and the features that the code may use."""
    if machine.name != "host":
        features = sorted(machine.requires)
        return {"cpu": machine.cpu, "features": features}
    binding: Any = import_whole("llvmlite.binding")
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


_TYPES = {
    "f64": "double",
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    **{"f8e4m3": "uint8_t", "f8e5m2": "uint8_t"},
    "i1": "uint8_t",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}
_MEMBERS = {"size": "shape", "stride": "strides"}
_SCALARS = {"i64": "int64_t", "f64": "double", "i1": "int"}
_BITS = {
    "f8e4m3": "float8_e4m3fn, as bits",
    "f8e5m2": "float8_e5m2, as bits",
    "f16": "IEEE half precision, as bits",
    "bf16": "bfloat16, as bits",
}

_RESERVED = """
    auto bool break case char class const continue default delete do double else enum
    extern float for friend goto if inline int long namespace new operator private
    public register restrict return short signed sizeof static struct switch template
    this typedef union unsigned using virtual void volatile while
    grid slot slots workspace
"""
"""Reserved words of C and C++, and parameters of our function."""


def c_header(
    name: str, signature: Signature, stored: Collection[int], *, uses_tiles: bool
) -> str:
    """Return the text of the header.

    Args:
        name: the name of the function; a ``_`` is appended if it is a word of C. The
            object has ``NAME_kernel``.
        signature: the signature of the kernel.
        stored: indices of the arguments it writes, constants left out.
        uses_tiles: whether Linux must permit AMX first.
    """
    params = list(signature.runtime.values())
    guard = f"XETL_{name.upper()}_H"
    launch = files("xetl_cpu").joinpath("launch.h").read_text("utf-8")
    return "\n".join([
        _comment(name, params),
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *(["#define XETL_NEEDS_TILES"] if uses_tiles else []),
        launch,
        "#ifdef __cplusplus",
        'extern "C"',
        "#endif",
        f"int64_t {name}_kernel(int64_t *slots);",
        "",
        *_function(name, params, stored, uses_tiles),
        "",
        f"#endif /* {guard} */",
        "",
    ])  # fmt: skip


def _comment(name: str, params: Sequence[RuntimeParam]) -> str:
    lines = [
        f"{name}: a kernel compiled by xetl {__version__}.",
        "",
        "Link the code beside this file, and -lm. With -fopenmp it uses OpenMP's",
        "threads, else one.",
        f"{c_name(name)}() returns 0, or an XETL_ERROR below.",
        "grid is the number of programs.",
        "Shapes and strides are in elements.",
        *[note for param in params for note in _notes(param)],
    ]
    rest = [f" * {line}".rstrip() for line in lines[1:]]
    return "\n".join([f"/* {lines[0]}", *rest, " */"])


def _notes(param: RuntimeParam) -> list[str]:
    if isinstance(param, ScalarParam):
        return []
    name = c_name(param.name)
    found: list[str] = []
    for what, dim, size in param.needed:
        found.append(f"{name}_{_MEMBERS[what]}[{dim}] must be {size}.")
    if param.dtype.name in _BITS:
        found.append(f"{name} is {_BITS[param.dtype.name]}.")
    return found


def _function(
    name: str, params: Sequence[RuntimeParam], stored: Collection[int], uses_tiles: bool
) -> list[str]:
    taken = ["const int64_t grid[3]"]
    taken += [_declared(p, index in stored) for index, p in enumerate(params)]
    taken += ["xetl_workspace *workspace"]
    start = f"static inline int {c_name(name)}("
    head = start + f",\n{' ' * len(start)}".join(taken) + ")"
    words = FIRST_ARGUMENT + sum(map(slots_of, params))
    tiles = ["    if (xetl_permit_tiles()) return XETL_ERROR_TILES;"]
    return [
        head,
        "{",
        f"    int64_t slots[{words}] = {{0}};",
        f"    int64_t *slot = slots + {FIRST_ARGUMENT};",
        *[line for param in params for line in _filled(param)],
        "    (void)slot;",
        *(tiles if uses_tiles else []),
        f"    return xetl_launch({name}_kernel, slots, grid, workspace);",
        "}",
    ]


def _declared(param: RuntimeParam, is_stored: bool) -> str:
    name = c_name(param.name)
    if isinstance(param, ScalarParam):
        return f"{_SCALARS[param.kind]} {name}"
    const = "" if is_stored else "const "
    sizes = f"const int64_t {name}_shape[{param.rank}]"
    strides = f"const int64_t {name}_strides[{param.rank}]"
    return f"{const}{_TYPES[param.dtype.name]} *{name}, {sizes}, {strides}"


def _filled(param: RuntimeParam) -> list[str]:
    name = c_name(param.name)
    if isinstance(param, ScalarParam):
        value = {"f64": f"xetl_bits({name})", "i1": f"{name} != 0"}
        return [f"    *slot++ = {value.get(param.kind, name)};"]
    dims = f"{param.rank}, {name}_shape, {name}_strides"
    lines = [f"    slot = xetl_put_array(slot, {name}, {dims});"]
    for what, dim, size in param.needed:
        test, error = f"{name}_{_MEMBERS[what]}[{dim}] != {size}", "XETL_ERROR_SHAPE"
        if what == "stride":
            test, error = f"{name}_shape[{dim}] > 1 && {test}", "XETL_ERROR_STRIDE"
        lines.append(f"    if ({test}) return {error};")
    return lines


def c_name(name: str) -> str:
    """Return a Python name as a valid name in C."""
    written = letters_of_c(name)
    return f"{written}_" if written in _RESERVED.split() else written
