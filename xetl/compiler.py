"""The compiler on one screen: Python function to XeTile IR to code of a backend.

`build` calls the front end, and `xetl.pipeline.lower` runs the passes.
`compile_kernel` does both and lets the backend make code. `ir_at_stage` returns the
text of a stage between these steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xetl.backend import Artifact, BackendBase
from xetl.dialects.base import operations_in
from xetl.dialects.kernel_attributes import mark_stage
from xetl.dialects.upstream import func, gpu
from xetl.dialects.xetile import AssertOp
from xetl.errors import LaunchError, did_you_mean
from xetl.frames import may_be_stepped
from xetl.frontend import build_module
from xetl.language.reads import Reads
from xetl.language.signature import Signature
from xetl.pipeline import (
    FIRST_STAGE,
    Dump,
    device_pipeline,
    lower,
    pipeline_of,
    refuse_deep_nesting,
    report_map_conflicts,
)
from xetl.transforms.diagnostics import collect_remarks, elements_each, facts_of


def build(
    function: Callable[..., Any],
    signature: Signature,
    backend: BackendBase,
    target: str,
    reads: Reads | None = None,
) -> ModuleOp:
    """Build the module of a Python function; ``reads`` records its dependencies."""
    return build_module(
        function,
        signature,
        subgroups=getattr(function, "__xetl_subgroups__", None),
        slm_limit=backend.slm_limit(target),
        reads=reads,
        steps=backend.stops_at_breakpoints and may_be_stepped(function),
    )


def compile_kernel(
    function: Callable[..., Any],
    signature: Signature,
    backend: BackendBase,
    target: str,
    reads: Reads | None = None,
) -> Artifact:
    """Compile a Python function for the arguments that the signature describes.

    Raises:
        CompileError: the kernel is wrong.
    """
    make = partial(build, function, signature, backend, target, reads)
    names = function.__name__, function.__code__.co_filename
    return _compile(make, names, signature, backend, target)


def compile_module(
    module: ModuleOp, signature: Signature, backend: BackendBase, target: str, file: str
) -> Artifact:
    """Compile a module that has one kernel; its locations are lines of ``file``."""
    kernel = operations_in(module, gpu.FuncOp, func.FuncOp)[0]
    names = kernel.sym_name.data, file
    return _compile(lambda: module, names, signature, backend, target)


def _compile(
    make: Callable[[], ModuleOp],
    names: tuple[str, str],
    signature: Signature,
    backend: BackendBase,
    target: str,
) -> Artifact:
    start = perf_counter()
    kernel, file = names
    part = backend.first_part(target)
    with collect_remarks() as remarks, refuse_deep_nesting(kernel, file):
        pipeline = pipeline_of(backend, part)
        dump = Dump(backend.name, pipeline.names())
        module = make()
        asserts = bool(operations_in(module, AssertOp))
        elements: int | None = None
        for step in lower(module, backend, target, pipeline):
            dump.show(step.name, step.stage, step.module)
            if step.stage == FIRST_STAGE:
                report_map_conflicts(step.module, pipeline.passes)
                elements = elements_each(step.module)
        artifact = backend.build(module, signature, part)
    facts: dict[str, object] = {"kernel": kernel, "backend": backend.name}
    facts |= {"target": target, "elements": elements}
    facts |= {"compile_ms": (perf_counter() - start) * 1e3, **facts_of(remarks, file)}
    facts["names_lines"] = asserts or bool(facts["warnings"])
    return Artifact(artifact.payload, {**artifact.meta, **facts})


def ir_at_stage(
    module: ModuleOp,
    signature: Signature,
    backend: BackendBase,
    target: str,
    stage: str,
) -> str:
    """Return the text of the module at a stage or after a pass, or the backend's code.

    The stages of `device_pipeline` can be shown for every backend.

    Raises:
        LaunchError: there is no such stage or pass.
    """
    pipeline = pipeline_of(backend, target)
    device = device_pipeline(backend, target)
    own = [*pipeline.names(), *backend.stages]
    known = list(dict.fromkeys([*own, *device.names()]))
    if stage not in known:
        problem = f"there is no stage or pass called `{stage}`"
        help_ = did_you_mean(stage, known)
        raise LaunchError(
            problem, code="X0812", notes=[f"there are {', '.join(known)}"], help=help_
        )
    for step in lower(module, backend, target, pipeline if stage in own else device):
        if stage in (step.name, step.stage):
            if step.stage is not None:
                mark_stage(module, backend.name, step.stage)
            return str(module)
    if stage in (pipeline if stage in own else device).names():
        text = f"the text was lowered further than `{stage}` before it was printed"
        raise LaunchError(text, code="X0812")
    return backend.text(module, signature, target, stage)


def has_stage(stage: str, backend: BackendBase) -> bool:
    """Whether `ir_at_stage` knows a stage on a backend."""
    target = backend.targets[0]
    both = pipeline_of(backend, target), device_pipeline(backend, target)
    return stage in backend.stages or any(stage in each.names() for each in both)
