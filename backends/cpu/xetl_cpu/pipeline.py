"""The passes of the CPU backend in order, and what becomes of their result."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xetl.backend import Artifact
from xetl.dialects.base import ints_of
from xetl.dialects.upstream import func
from xetl.language.signature import Signature
from xetl.transforms.canonicalize import CanonicalizePass
from xetl_cpu.build import assemble, assembly, llvm_text
from xetl_cpu.emit import KERNEL
from xetl_cpu.entry import with_entry
from xetl_cpu.image import build_image
from xetl_cpu.lowering.convert_xetile_to_loops import ConvertXetileToLoopsPass
from xetl_cpu.lowering.hoist_launch_invariants import HoistLaunchInvariantsPass
from xetl_cpu.lowering.materialize_grid import STORED, MaterializeGridPass
from xetl_cpu.lowering.pack_operands import PackOperandsPass
from xetl_cpu.lowering.raise_to_brgemm import RaiseToBrgemmPass
from xetl_cpu.targets import find_target

STAGE_AFTER = {"pack-operands": "xsmm", "convert-xetile-to-loops": "loops"}


def passes(target: str) -> list[ModulePass]:
    """From the ``xetile`` stage to ``loops``."""
    machine = find_target(target)
    return [
        MaterializeGridPass(),
        HoistLaunchInvariantsPass(),
        # After hoisting: the number of steps must stand before the programs to be
        # known when B is packed.
        RaiseToBrgemmPass(),
        HoistLaunchInvariantsPass(),
        PackOperandsPass(machine),
        ConvertXetileToLoopsPass(machine),
        CanonicalizePass(),
    ]


def opt_passes() -> dict[str, type[ModulePass]]:
    """By name; those that need a target take it as an option."""
    return {each.name: type(each) for each in passes("host")}


def build(module: ModuleOp, signature: Signature, target: str) -> Artifact:
    """Machine code and the facts the runtime needs."""
    machine = find_target(target)
    code = build_image(assemble(llvm_text(module, machine), machine), [KERNEL])
    image = with_entry(code)
    meta = {"stored": stored_arguments(module), "code_bytes": len(image.code)}
    return Artifact(image.to_bytes(), meta)


def text(module: ModuleOp, target: str, stage: str) -> str:
    """The LLVM IR or the assembly of a lowered module."""
    machine = find_target(target)
    llvm = llvm_text(module, machine)
    return llvm if stage == "llvm" else assembly(llvm, machine)


def stored_arguments(module: ModuleOp) -> list[int]:
    """Indices of the arguments whose memory the kernel writes."""
    (function,) = [op for op in module.walk() if isinstance(op, func.FuncOp)]
    return list(ints_of(function.attributes[STORED]))
