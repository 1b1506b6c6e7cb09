"""The C header of an exported kernel: a function with the kernel's own parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from importlib.resources import files

from xetl import __version__
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl_cpu.launch.slots import FIRST_ARGUMENT

_TYPES = {
    "f64": "double",
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "i1": "uint8_t",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}
_SCALARS = {"i64": "int64_t", "f64": "double", "i1": "int"}
_BITS = {"f16": "IEEE half precision, as bits", "bf16": "bfloat16, as bits"}

_RESERVED = """
    auto bool break case char class const continue default delete do double else enum
    extern float for friend goto if inline int long namespace new operator private
    public register restrict return short signed sizeof static struct switch template
    this typedef union unsigned using virtual void volatile while
    grid slot slots workspace
"""
"""Words of C and C++, and our own of the function."""


def c_header(
    name: str, signature: Signature, stored: Collection[int], *, uses_tiles: bool
) -> str:
    """The text of the header.

    Args:
        name: of the function; the object has ``NAME_kernel``.
        signature: what the kernel takes.
        stored: indices of the arguments it writes, constants left out.
        uses_tiles: whether Linux must permit AMX first.
    """
    params = [p for p in signature.params if not isinstance(p, ConstParam)]
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


def _comment(name: str, params: Sequence[ArrayParam | ScalarParam]) -> str:
    lines = [
        f"{name}: a kernel compiled by xetl {__version__}.",
        "",
        f"Link {name}.o and -lm. With -fopenmp it uses OpenMP's threads, else one.",
        f"{name}() returns 0, or an XETL_ERROR below. grid is the number of programs.",
        "Shapes and strides are in elements.",
        *[note for param in params for note in _notes(param)],
    ]
    rest = [f" * {line}".rstrip() for line in lines[1:]]
    return "\n".join([f"/* {lines[0]}", *rest, " */"])


def _notes(param: ArrayParam | ScalarParam) -> list[str]:
    if isinstance(param, ScalarParam):
        return []
    name = c_name(param.name)
    found: list[str] = []
    if param.unit_dim is not None:
        found.append(f"{name}_strides[{param.unit_dim}] must be 1.")
    if param.dtype.name in _BITS:
        found.append(f"{name} is {_BITS[param.dtype.name]}.")
    return found


def _function(
    name: str,
    params: Sequence[ArrayParam | ScalarParam],
    stored: Collection[int],
    uses_tiles: bool,
) -> list[str]:
    taken = ["const int64_t grid[3]"]
    taken += [_declared(p, index in stored) for index, p in enumerate(params)]
    taken += ["xetl_workspace *workspace"]
    indent = " " * (len(f"static inline int {name}("))
    head = f"static inline int {name}(" + f",\n{indent}".join(taken) + ")"
    words = FIRST_ARGUMENT + sum(map(_words, params))
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


def _words(param: ArrayParam | ScalarParam) -> int:
    return 1 + 2 * param.rank if isinstance(param, ArrayParam) else 1


def _declared(param: ArrayParam | ScalarParam, is_stored: bool) -> str:
    name = c_name(param.name)
    if isinstance(param, ScalarParam):
        return f"{_SCALARS[param.kind]} {name}"
    const = "" if is_stored else "const "
    sizes = f"const int64_t {name}_shape[{param.rank}]"
    strides = f"const int64_t {name}_strides[{param.rank}]"
    return f"{const}{_TYPES[param.dtype.name]} *{name}, {sizes}, {strides}"


def _filled(param: ArrayParam | ScalarParam) -> list[str]:
    name = c_name(param.name)
    if isinstance(param, ScalarParam):
        value = {"f64": f"xetl_bits({name})", "i1": f"{name} != 0"}
        return [f"    *slot++ = {value.get(param.kind, name)};"]
    dims = f"{param.rank}, {name}_shape, {name}_strides"
    lines = [f"    slot = xetl_put_array(slot, {name}, {dims});"]
    if param.unit_dim is not None:
        unit = param.unit_dim
        lines.append(
            f"    if ({name}_shape[{unit}] > 1 && {name}_strides[{unit}] != 1)"
            " return XETL_ERROR_STRIDE;"
        )
    return lines


def c_name(name: str) -> str:
    """A Python name as one that C takes."""
    ascii_only = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{ascii_only}_" if ascii_only in _RESERVED.split() else ascii_only
