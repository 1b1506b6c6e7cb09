"""The pipeline on one screen: Python function to XeTile IR to what a backend runs."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from xetl.backend import Artifact, Backend
from xetl.devices import DEVICES
from xetl.dialects.upstream.gpu import FuncOp
from xetl.dialects.xetile.used_maps import maps_may_meet
from xetl.errors import InternalError, LaunchError, SyntaxNotSupportedError
from xetl.frontend import build_module
from xetl.language.reads import Reads
from xetl.language.signature import Signature
from xetl.settings import config
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.check_barriers import CheckBarriersPass
from xetl.transforms.check_workgroup import SLM_LIMIT, CheckWorkgroupPass
from xetl.transforms.cse import CSEPass
from xetl.transforms.drop_breakpoints import DropBreakpointsPass
from xetl.transforms.remarks import Remark, collect_remarks
from xetl.transforms.stages import check_stage, find_stage

FIRST_STAGE = "xetile"
DEFAULT_DEVICE = "pvc"
"""Whose blocks are shown where the target is none of these devices."""

SUBGROUPS = "__xetl_subgroups__"
"""Where the decorator leaves the layout of a kernel written at subgroup level."""


@dataclass(frozen=True)
class Step:
    """What the module is after a pass; ``stage`` when a stage begins there."""

    name: str
    stage: str | None
    module: ModuleOp


def compile_kernel(
    function: Callable[..., Any],
    signature: Signature,
    backend: Backend,
    target: str,
    reads: Reads | None = None,
) -> Artifact:
    """Compile a kernel for the arguments that the signature describes.

    ``reads`` takes down what else the code depends on.

    Raises:
        CompileError: the kernel is wrong; nothing was made.
    """
    steps = lower(function, signature, backend, target, reads)
    names = function.__name__, function.__code__.co_filename
    return _compile(steps, names, signature, backend, target)


def compile_module(
    module: ModuleOp, signature: Signature, backend: Backend, target: str, file: str
) -> Artifact:
    """Compile a module with one kernel; ``file`` is where its lines stand."""
    kernel = next(op for op in module.walk() if isinstance(op, FuncOp))
    names = kernel.sym_name.data, file
    steps = lower_module(module, backend, target)
    return _compile(steps, names, signature, backend, target)


def _compile(
    steps: Iterator[Step],
    names: tuple[str, str],
    signature: Signature,
    backend: Backend,
    target: str,
) -> Artifact:
    """``names``: of the kernel, and of the file its lines stand in."""
    start = perf_counter()
    kernel, file = names
    module = ModuleOp([])
    with collect_remarks() as remarks, _not_too_deep(names):
        wanted = _wanted_dumps(backend, target)
        for step in steps:
            if wanted & {step.name, step.stage, "all"}:
                _print(f"// after {step.name}\n{step.module!s}")
            module = step.module
            if step.stage == FIRST_STAGE:
                _report_maps(module, backend, target)
        artifact = backend.build(module, signature, target)
    facts = {
        "kernel": kernel,
        "backend": backend.name,
        "target": target,
        "compile_ms": (perf_counter() - start) * 1e3,
        "remarks": [_described(each, file) for each in remarks],
        "warnings": [[r.line, r.text, r.file] for r in remarks if r.is_warning],
    }
    return Artifact(artifact.payload, {**artifact.meta, **facts})


@contextmanager
def _not_too_deep(names: tuple[str, str]) -> Generator[None]:
    """Inside, a program that is too deep to be followed is an error of its own."""
    try:
        yield
    except RecursionError:
        name, file = names
        raise SyntaxNotSupportedError(
            f"`{name}` is nested too deeply",
            code="X0408",
            file=file,
            help="split it: branches and dependent operations stand in one another",
        ) from None


def _report_maps(module: ModuleOp, backend: Backend, target: str) -> None:
    """Say where the maps that a user gave meet and differ, if the backend will not."""
    settles = any(each.name == "propagate-wg-maps" for each in backend.passes(target))
    if not settles and any(maps_may_meet(op) for op in module.ops):
        follow = importlib.import_module("xetl.transforms.follow_maps")
        follow.follow_maps(module)


def _described(remark: Remark, file: str) -> list[int | str]:
    """``[line, topic, text]``, and the file if it is not the kernel's."""
    found = [remark.line, remark.topic, remark.text]
    elsewhere = remark.file and remark.file != file
    return [*found, remark.file] if elsewhere else found


def lowered(
    function: Callable[..., Any], signature: Signature, backend: Backend, target: str
) -> ModuleOp:
    """What a backend makes code of: the module after all passes."""
    return lowered_module(_build(function, signature, backend, target), backend, target)


def lowered_module(module: ModuleOp, backend: Backend, target: str) -> ModuleOp:
    """As `lowered`, of what the front end or a text made."""
    for step in lower_module(module, backend, target):
        module = step.module
    return module


def lower_to_stage(
    function: Callable[..., Any],
    signature: Signature,
    backend: Backend,
    target: str,
    stage: str,
) -> str:
    """The text of the module at a stage, after a pass, or of the backend's code.

    Raises:
        LaunchError: there is no such stage or pass.
    """
    module = _build(function, signature, backend, target)
    return module_at_stage(module, signature, backend, target, stage)


def module_at_stage(
    module: ModuleOp, signature: Signature, backend: Backend, target: str, stage: str
) -> str:
    """As `lower_to_stage`, of what the front end or a text made.

    The stages on the way to a device's blocks are there on every backend.
    """
    own, device = _own_road(backend, target), _device_road(backend, target)
    known = [*own.names(), *backend.stages]
    road = device if stage in device.names() and stage not in known else own
    known = list(dict.fromkeys([*known, *device.names()]))
    if stage not in known:
        near = difflib.get_close_matches(stage, known, 1)
        raise LaunchError(
            f"there is no stage or pass called `{stage}`",
            code="X0812",
            notes=[f"there are {', '.join(known)}"],
            help=f"did you mean `{near[0]}`?" if near else None,
        )
    for step in _lower(module, backend, target, road):
        if stage in (step.name, step.stage):
            return str(module)
    return backend.text(module, signature, target, stage)


def has_stage(stage: str, backend: Backend) -> bool:
    """Whether `lower_to_stage` knows a name, on a backend."""
    target = backend.targets[0]
    roads = _own_road(backend, target), _device_road(backend, target)
    return stage in backend.stages or any(stage in road.names() for road in roads)


@dataclass(frozen=True)
class _Road:
    """Passes in order, and the stages that some of them enter."""

    passes: Sequence[ModulePass]
    stage_after: Callable[[str], str | None]

    def names(self) -> list[str]:
        """The stages and passes that leave a module, in order."""
        names = ["frontend", "cse", FIRST_STAGE]
        for each in self.passes:
            stage = self.stage_after(each.name)
            names += [each.name] if stage is None else [each.name, stage]
        return list(dict.fromkeys(names))


def _own_road(backend: Backend, target: str) -> _Road:
    return _Road(backend.passes(target), backend.stage_after)


def _device_road(backend: Backend, target: str) -> _Road:
    """Loaded when asked for: few kernels are looked at on the way to blocks."""
    pipeline = importlib.import_module("xetl.transforms.device_pipeline")
    device = target if target in DEVICES else DEFAULT_DEVICE
    passes = pipeline.device_passes(device, _slm_limit(backend, target))
    return _Road(passes, pipeline.STAGE_AFTER.get)


def lower(
    function: Callable[..., Any],
    signature: Signature,
    backend: Backend,
    target: str,
    reads: Reads | None = None,
) -> Iterator[Step]:
    """Run the pipeline step by step; the module is the same object throughout."""
    module = _build(function, signature, backend, target, reads)
    yield from lower_module(module, backend, target)


def _build(
    function: Callable[..., Any],
    signature: Signature,
    backend: Backend,
    target: str,
    reads: Reads | None = None,
) -> ModuleOp:
    subgroups = getattr(function, SUBGROUPS, None)
    limit = _slm_limit(backend, target)
    return build_module(
        function, signature, subgroups=subgroups, slm_limit=limit, reads=reads
    )


def lower_module(module: ModuleOp, backend: Backend, target: str) -> Iterator[Step]:
    """As `lower`, from what the front end or a text made."""
    yield from _lower(module, backend, target, _own_road(backend, target))


def _lower(
    module: ModuleOp, backend: Backend, target: str, road: _Road
) -> Iterator[Step]:
    context = Context()
    yield Step("frontend", None, module)
    CheckWorkgroupPass(_slm_limit(backend, target)).apply(context, module)
    if not getattr(backend, "stops_at_breakpoints", False):
        DropBreakpointsPass().apply(context, module)
    for common in (CanonicalizePass(), CSEPass()):
        common.apply(context, module)
    CheckBarriersPass().apply(context, module)
    _check(module, FIRST_STAGE, "cse")
    yield Step("cse", FIRST_STAGE, module)
    for each in road.passes:
        each.apply(context, module)
        stage = road.stage_after(each.name)
        _check(module, stage, each.name)
        yield Step(each.name, stage, module)


def _slm_limit(backend: Backend, target: str) -> int:
    """Bytes of shared memory a workgroup may have."""
    known = getattr(backend, "slm_limit", None)
    return SLM_LIMIT if known is None else known(target)


def _check(module: ModuleOp, stage: str | None, after: str) -> None:
    """Verify where most stages begin; after every pass when `config.verify` is set."""
    begins = stage is not None and find_stage(stage).is_verified
    try:
        if begins or config.verify:
            module.verify()
        if stage is not None:
            check_stage(module, stage)
    except VerifyException as error:
        raise InternalError(f"pass `{after}` left a wrong module: {error}") from error


def _wanted_dumps(backend: Backend, target: str) -> set[str]:
    """``after:<pass or stage>`` in `config.dump` prints to stderr; ``all`` everything.

    A name that is not there is no error: another backend may have it.
    """
    text = config.dump
    if not text:
        return set()
    wanted = {part.strip().removeprefix("after:") for part in text.split(",")}
    known = _own_road(backend, target).names()
    for name in sorted(wanted - {*known, "all"}):
        listed = ", ".join(known)
        _print(f"// XETL_DUMP: `{backend.name}` has no `{name}`; there are {listed}")
    return wanted


def _print(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - asked for
