"""Kernels written in `simt`, emitted and run on opencl:cpu: lanes and arrays only."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tests.backends.xegpu import device
from xetl.dialects.parser import make_context, parse_module
from xetl.runtime.log import LOG_WORDS
from xetl.transforms.stages import check_stage
from xetl_xegpu.build_options import FOR_CPUS
from xetl_xegpu.emit.module import emit
from xetl_xegpu.simt import SIMT

TARGET = "opencl"
HEAD = "subgroup_size = 16, slm_bytes = {slm}"


def kernel(
    name: str,
    arguments: str,
    body: str,
    *,
    lanes: int = 16,
    slm: int = 0,
    more: str = "",
) -> str:
    """The text of a kernel; ``%status`` is its last argument."""
    attributes = f"work_group = array<i64: {lanes}, 1, 1>, {HEAD.format(slm=slm)}{more}"
    return f"""
    simt.func @{name}({arguments}, %status: i64) attributes {{{attributes}}} {{
      %on = arith.constant true
      %lane = simt.lane_id
      %wide = arith.extui %lane : i32 to i64
      {body}
      simt.return
    }}"""


def parsed(text: str) -> ModuleOp:
    module = parse_module(text, "test", make_context([SIMT]))
    module.verify()
    check_stage(module, "lanes")
    return module


@cache
def _queue() -> tuple[Any, Any]:
    device.require()
    dpctl = import_module("dpctl")
    program = import_module("dpctl.program")
    return program, dpctl.SyclQueue("opencl:cpu", property="in_order")


class Program:
    """Kernels that can be launched with arrays and ctypes numbers."""

    def __init__(self, text: str) -> None:
        emitted = emit(parsed(text), TARGET)
        program, self.queue = _queue()
        build, options = program.create_program_from_spirv, " ".join(FOR_CPUS)
        self.built = build(self.queue, emitted.spirv, options)
        self.log = emitted.log
        self.status = np.zeros(LOG_WORDS, np.int64)

    def __call__(
        self, name: str, *arguments: Any, groups: int = 1, lanes: int = 16
    ) -> None:
        self.status[0] = 1
        given = [
            ctypes.c_int64(each.ctypes.data) if isinstance(each, np.ndarray) else each
            for each in (*arguments, self.status)
        ]
        found = self.built.get_sycl_kernel(name)
        sizes = [1, 1, groups * lanes], [1, 1, lanes]
        self.queue.submit(found, given, *sizes).wait()


def i32(value: int) -> Any:
    return ctypes.c_int32(value)


def i64(value: int) -> Any:
    return ctypes.c_int64(value)


def store_items(values: list[str], types: list[str], item_bytes: int) -> str:
    """Store pieces to ``%out``: item i of lane l is element 16 i + l."""
    lines: list[str] = []
    number = 0
    for value, type_ in zip(values, types):
        count = int(type_[7 : type_.index("x")]) if type_.startswith("vector") else 1
        element = type_[type_.index("x") + 1 : -1] if count > 1 else type_
        for index in range(count):
            name = f"%i{number}"
            part = value
            if count > 1:
                part = f"{name}_v"
                lines.append(
                    f"{part} = vector.extract {value}[{index}] : {element} from {type_}"
                )
            lines += [
                f"{name}_c = arith.constant {16 * number * item_bytes} : i64",
                f"{name}_b = arith.constant {item_bytes} : i64",
                f"{name}_l = arith.muli %wide, {name}_b : i64",
                f"{name}_o = arith.addi {name}_c, {name}_l : i64",
                f"{name}_p = arith.addi %out, {name}_o : i64",
                f"simt.store {part}, {name}_p, %on : {element}",
            ]
            number += 1
    return "\n      ".join(lines)
