"""Export of a kernel: SPIR-V files, and the facts that a host program needs.

There may be two programs: one moves matrices by block messages and needs arrays that
fit them; the other takes any arrays (docs/design/0005-xegpu.md, "Which of two
kernels").
"""

from __future__ import annotations

import json
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xetl import __version__
from xetl.devices import find_device
from xetl.errors import cannot_be_shown
from xetl.findings import Export, letters_of_c
from xetl.language.signature import ArrayParam, ScalarParam, Signature
from xetl_xegpu import limits
from xetl_xegpu.build_options import build_options
from xetl_xegpu.launch.facts import ArgumentFacts, CodeFacts, KernelFacts, facts_of
from xetl_xegpu.offline import ocloc
from xetl_xegpu.pipeline import build

_SUFFIX, _BINARY = ".spv", ".bin"
_READ_ONLY = "i64 address of 64 bytes"

_ASSUMPTIONS = (
    "the last word is the address of 64 bytes: what masks leave out is read there",
    "addresses are of memory that the device reaches (USM); strides are in elements",
    "the global range is the grid times `work_group`, the local range `work_group`",
    "every element lies on a multiple of its size",
    f"kernels that move blocks have at most {limits.MOST_PROGRAMS} programs along an"
    " axis, and less than 2^32 along x and y",
    "arrays that are written share no memory with other arguments, nor their own"
    " elements with each other",
)


def export(module: ModuleOp, signature: Signature, target: str, name: str) -> Export:
    """Return the programs and facts of a module at stage ``lanes``.

    Raises:
        LaunchError: the kernel prints or asserts; only our launches can show that.
    """
    artifact = build(module, target)
    facts = facts_of(artifact.meta)
    if any(kernel.tells for kernel in facts.kernels):
        raise cannot_be_shown(name)
    codes = [artifact.payload[kernel.spirv] for kernel in facts.kernels]
    endings = [_SUFFIX, *[f".any{_SUFFIX}"] * (len(codes) - 1)]
    params = list(signature.runtime.values())
    pairs = zip(params, facts.arguments)
    words = [word for param, of in pairs for word in _words(param.name, of)]
    described = {
        "format": "SPIR-V, for OpenCL and Level Zero",
        "kernels": [
            _kernel(kernel, ending, params)
            for kernel, ending in zip(facts.kernels, endings)
        ],
        "words": [*words, _READ_ONLY],
        "slm_bytes": facts.slm_bytes,
        "grf": facts.grf,
        "build_options": {
            "opencl": _options(facts, is_level_zero=False),
            "level_zero": _options(facts, is_level_zero=True),
        },
        "device_needs": sorted(facts.needs),
    }
    others = dict(zip(endings[1:], codes[1:]))
    if target in ocloc.DEVICES and ocloc.find_ocloc() is not None:
        for ending, code in zip(endings, codes):
            made = ocloc.compile_spirv(code, target, large_registers=facts.is_large)
            others[ending.replace(_SUFFIX, _BINARY)] = made.binary
    stored = artifact.meta.get("stored", ())
    header = _header(name, target, described)
    return Export(
        codes[0], _SUFFIX, header, described, _ASSUMPTIONS, others, stored=stored
    )


def _header(name: str, target: str, facts: dict[str, Any]) -> str:
    """Return a header in C with the constants that a host program needs."""
    prefix = name.upper()
    lines = [
        f"/* {name}: a kernel compiled by xetl {__version__} for {target}.",
        " *",
        " * The JSON beside says what it relies on. The global range is the grid times",
        " * the work group. Arguments are set one by one, by clSetKernelArg or",
        " * zeKernelSetArgumentValue, in the order of the enumeration. */",
        f"#ifndef XETL_{prefix}_H",
        f"#define XETL_{prefix}_H",
        f"#define {prefix}_SLM_BYTES {facts['slm_bytes']}",
        *[
            f"#define {prefix}_{driver.upper()}_OPTIONS {json.dumps(options)}"
            for driver, options in facts["build_options"].items()
        ],
    ]
    for each in facts["kernels"]:
        ending: str = each["file_ends_in"]
        part = prefix if ending == _SUFFIX else f"{prefix}_ANY"
        group = ", ".join(map(str, each["work_group"]))
        lines += [
            f"/* {name}{ending}: {_taken(each)} */",
            f"#define {part}_FUNCTION {json.dumps(each['function'])}",
            f"#define {part}_WORK_GROUP {{{group}}}",
        ]
    # ``i64 size 0 of A`` has the name ``SIZE_0_OF_A``.
    named = {each: letters_of_c(each.partition(" ")[2]) for each in facts["words"]}
    words = [f"    {prefix}_{name}, /* {each} */" for each, name in named.items()]
    lines += [f"enum {name}_argument {{", *words, f"    {prefix}_ARGUMENTS", "};"]
    return "\n".join([*lines, f"#endif /* XETL_{prefix}_H */", ""])


def _taken(kernel: dict[str, Any]) -> str:
    if not kernel["moves_by_blocks"]:
        return "takes any arrays"
    return f"{', '.join(kernel['moves_by_blocks'])} must {kernel['which_must']}"


def _kernel(
    kernel: KernelFacts, ending: str, params: list[ArrayParam | ScalarParam]
) -> dict[str, Any]:
    names = [params[each.argument].name for each in kernel.surfaces]
    sliced = [params[each.argument].name for each in kernel.surfaces if each.sliced]
    how = _BLOCKS if names else ""
    if any(each.folded for each in kernel.surfaces):
        how = _FOLDED
    if sliced:
        which, step = ", ".join(sorted(set(sliced))), limits.BASE_ALIGNMENT
        how += f"; rows of {which} are in steps of {step} bytes"
    return {
        "function": kernel.name,
        "file_ends_in": ending,
        "work_group": list(kernel.lanes),
        "moves_by_blocks": sorted(set(names)),
        "which_must": how,
    }


_BLOCKS = (
    f"begin at multiples of {limits.BASE_ALIGNMENT} bytes, have one row or more, of "
    f"{limits.LEAST_WIDTH} bytes and more in steps of {limits.WIDTH_STEP}, "
    f"{limits.LEAST_PITCH} bytes or more apart in steps of {limits.PITCH_STEP}, "
    f"and less than {limits.LIMIT} of rows and bytes of a row"
)

_FOLDED = (
    f"begin at multiples of {limits.BASE_ALIGNMENT} bytes, and have rows of "
    f"{limits.LEAST_WIDTH} bytes: one or more, less than {limits.LIMIT}"
)


def _words(name: str, argument: ArgumentFacts) -> list[str]:
    """Return the words that a kernel gets for an argument: 64 bits each (f32: 32)."""
    if argument.kind != "array":
        return [f"{argument.kind} {name}"]
    return [
        f"i64 address of {name}",
        *[f"i64 size {dim} of {name}" for dim in argument.sizes],
        *[f"i64 stride {dim} of {name}" for dim in argument.strides],
    ]


def _options(facts: CodeFacts, *, is_level_zero: bool) -> str:
    if find_device(facts.target).emulated:
        return ""  # all options are for GPUs
    return build_options(is_level_zero=is_level_zero, large_registers=facts.is_large)
