"""Kernels through Intel's offline compiler, beside what was planned for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tests.backends.xegpu.spirv_tools import says_the_same, validate
from tests.example_kernels import signature_of
from xetl.backend import find_backend
from xetl.compiler import build
from xetl.pipeline import lowered
from xetl_xegpu import simt
from xetl_xegpu.emit import module as emission
from xetl_xegpu.offline import isa
from xetl_xegpu.offline.ocloc import KernelFacts, compile_spirv
from xetl_xegpu.pipeline import planned_registers


@dataclass(frozen=True)
class Messages:
    """How often a kernel multiplies, and moves blocks."""

    dpas: int
    loads: int
    stores: int
    prefetches: int


@dataclass(frozen=True)
class Seen:
    """A kernel: what was planned, and what the compiler made of it."""

    planned: Messages
    found: Messages
    counts: isa.IsaCounts
    facts: KernelFacts


def lanes_of(kernel, args, target: str) -> ModuleOp:
    """The module that is emitted."""
    backend = find_backend("xegpu")
    module = build(kernel, signature_of(kernel, args), backend, target)
    return lowered(module, backend, target)


def compiled(module: ModuleOp, target: str) -> Mapping[str, Seen]:
    """Each kernel of a module of lanes, with the registers that are planned for it.

    The module of SPIR-V is valid, and its text assembles to it.
    """
    kernels = [op for op in module.walk() if isinstance(op, simt.FuncOp)]
    planned = {op.sym_name.data: planned_messages(op) for op in kernels}
    large = planned_registers(kernels, target) == 256
    spirv = emission.emit(module, target).spirv
    assert validate(spirv) is None
    assert says_the_same(emission.spirv_text(module, target), spirv)
    made = compile_spirv(spirv, target, large_registers=large)
    assert made.kernels.keys() == planned.keys()
    counts = {name: isa.count(text) for name, text in made.assembly.items()}
    return {
        name: Seen(planned[name], _found(counts[name]), counts[name], facts)
        for name, facts in made.kernels.items()
    }


def planned_messages(kernel: simt.FuncOp) -> Messages:
    """What is emitted as instructions; blocks moved by lanes are none."""
    names = Counter(type(op) for op in kernel.walk() if "by_lanes" not in op.properties)
    return Messages(
        names[simt.DpasOp],
        names[simt.BlockLoadOp],
        names[simt.BlockStoreOp],
        names[simt.BlockPrefetchOp],
    )


def _found(counts: isa.IsaCounts) -> Messages:
    return Messages(
        counts.dpas, counts.block_loads, counts.block_stores, counts.prefetches
    )
