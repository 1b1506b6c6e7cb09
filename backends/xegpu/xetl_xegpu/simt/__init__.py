"""The dialect between XeGPU and LLVM: code of one lane.

See docs/design/0005-xegpu.md, "Stage `lanes`".
"""

from __future__ import annotations

from xdsl.ir import Attribute, Dialect, Operation

from xetl.dialects.base import is_memref, is_vector, shape_of
from xetl.dialects.operation import operations_of
from xetl.transforms.stages import StageSpec, register_stage
from xetl_xegpu.simt import block_ops, memory_ops, program_ops
from xetl_xegpu.simt.block_ops import *
from xetl_xegpu.simt.memory_ops import *
from xetl_xegpu.simt.program_ops import *

SIMT = Dialect("simt", operations_of(program_ops, block_ops, memory_ops))


LENGTHS = (2, 3, 4, 8, 16)
"""The lengths of vectors that SPIR-V for OpenCL has."""


def _problem_with(type_: Attribute) -> str | None:
    if is_memref(type_):
        return "memory is known by its address"
    if is_vector(type_) and shape_of(type_) not in [(n,) for n in LENGTHS]:
        return f"vectors have {', '.join(map(str, LENGTHS))} elements"
    return None


def only_what_a_lane_holds(op: Operation) -> str | None:
    """Refuse memrefs, and vectors that SPIR-V does not have."""
    for value in (*op.operands, *op.results):
        problem = _problem_with(value.type)
        if problem is not None:
            return f"`{op.name}` works on {value.type}: {problem}"
    return None


_VECTOR = "extract insert broadcast from_elements shuffle bitcast fma"

LANES = register_stage(
    StageSpec(
        "lanes",
        frozenset({"builtin", "arith", "math", "scf", "simt"}),
        frozenset(f"vector.{name}" for name in _VECTOR.split()),
        (only_what_a_lane_holds,),
    )
)
"""`index` is an i64; bf16 and f16 are computed in f32 and rounded once."""
