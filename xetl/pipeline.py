"""The passes that run on a module: first the common ones, then those of the backend.

Their diagnostics: dumps of the IR, map conflicts, too deep nesting.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from xetl.backend import BackendBase
from xetl.devices import DEVICES
from xetl.dialects.base import operations_in
from xetl.dialects.kernel_attributes import stage_of
from xetl.dialects.upstream.gpu import BarrierOp
from xetl.dialects.xetile import AssertOp, BreakpointOp
from xetl.dialects.xetile.used_maps import maps_may_meet
from xetl.errors import InternalError, IRError, SyntaxNotSupportedError, XetlError
from xetl.imports import import_whole
from xetl.records import record
from xetl.settings import config
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.check_workgroup import CheckWorkgroupPass
from xetl.transforms.cse import CSEPass
from xetl.transforms.diagnostics import remark
from xetl.transforms.stages import check_stage, find_stage

FIRST_STAGE = "xetile"
DEFAULT_DEVICE = "pvc"
"""The device whose block sizes are used if the target is not a device."""


@record(frozen=True)
class Pipeline:
    """Passes in order; ``stage_after`` names the stage that begins after a pass."""

    passes: Sequence[ModulePass]
    stage_after: Callable[[str], str | None]

    def names(self) -> list[str]:
        """Return the names of the stages and of the passes, in order."""
        names = ["frontend", "cse", FIRST_STAGE]
        for each in self.passes:
            stage = self.stage_after(each.name)
            names += [each.name] if stage is None else [each.name, stage]
        return list(dict.fromkeys(names))


@record(frozen=True)
class Step:
    """The module after the pass ``name``; ``stage`` if a stage begins there."""

    name: str
    stage: str | None
    module: ModuleOp


Condition: TypeAlias = Callable[[ModuleOp], bool]
"""Whether a module has operations that a pass would change."""


@dataclass(frozen=True)
class LaterPass(ModulePass):
    """The pass ``name`` with ``options``, imported only if a module needs it.

    Many passes serve few kernels (most kernels have no products, or only plain
    matrices), and importing all passes takes a while.
    """

    # Other passes have their name on the class. An object of this one has its own name.
    name: str  # pyright: ignore[reportIncompatibleVariableOverride]
    wanted: Condition = lambda _: True
    options: tuple[object, ...] = ()
    folder: str = "xetl.transforms"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Load the pass and run it, if ``wanted`` is true of the module."""
        if self.wanted(op):
            self.load()(*self.options).apply(ctx, op)

    def load(self) -> type[ModulePass]:
        """Import the Python module called like the pass, and return the class in it."""
        module = import_whole(f"{self.folder}.{self.name.replace('-', '_')}")
        words = [word.capitalize() for word in self.name.split("-")]
        return getattr(module, f"{''.join(words)}Pass")


def having(*kinds: type[Operation]) -> Condition:
    """Return the condition that a module has operations of these classes."""
    return lambda module: bool(operations_in(module, *kinds))


def pipeline_of(backend: BackendBase, target: str) -> Pipeline:
    """Return the pipeline of a backend for a target."""
    return Pipeline(backend.passes(target), backend.stage_after)


def device_pipeline(backend: BackendBase, target: str) -> Pipeline:
    """Return the passes to the block sizes of a device; `ir` offers them everywhere."""
    # Imported late: few kernels are shown at these stages.
    pipeline = import_whole("xetl.transforms.device_pipeline")
    device = target if target in DEVICES else DEFAULT_DEVICE
    passes = pipeline.device_passes(device, backend.slm_limit(target))
    return Pipeline(passes, pipeline.STAGE_AFTER.get)


def common_passes(backend: BackendBase, target: str) -> list[ModulePass]:
    """Return the passes to the stage ``xetile``; those of the backend follow."""
    drop = LaterPass("drop-breakpoints", having(BreakpointOp, AssertOp))
    return [
        CheckWorkgroupPass(backend.slm_limit(target)),
        *([] if backend.stops_at_breakpoints else [drop]),
        CanonicalizePass(),
        CSEPass(),
        LaterPass("check-barriers", having(BarrierOp)),
    ]


def lower(
    module: ModuleOp,
    backend: BackendBase,
    target: str,
    pipeline: Pipeline | None = None,
) -> Iterator[Step]:
    """Run the passes one by one, on one module object; yield after each pass."""
    pipeline = pipeline or pipeline_of(backend, target)
    context = Context()
    override = _override(backend, pipeline)
    passes = _left(module, backend, pipeline)
    if passes is None:
        passes = pipeline.passes
        override("frontend", None, module)
        yield Step("frontend", None, module)
        for common in common_passes(backend, target):
            common.apply(context, module)
        verify_step(module, FIRST_STAGE, "cse")
        override("cse", FIRST_STAGE, module)
        yield Step("cse", FIRST_STAGE, module)
    for each in passes:
        each.apply(context, module)
        stage = pipeline.stage_after(each.name)
        verify_step(module, stage, each.name)
        override(each.name, stage, module)
        yield Step(each.name, stage, module)


def _left(
    module: ModuleOp, backend: BackendBase, pipeline: Pipeline
) -> Sequence[ModulePass] | None:
    """Return the passes after the stage at which a text was printed.

    Return None if the module is at no stage: all passes have to run.

    Raises:
        IRError: the text was printed by another backend.
    """
    begun = stage_of(module)
    if begun is None:
        return None
    stages = [pipeline.stage_after(each.name) for each in pipeline.passes]
    if begun[0] != backend.name or begun[1] not in stages:
        text = f"the text is of stage `{begun[1]}` of backend `{begun[0]}`"
        raise IRError(f"{text}: backend `{backend.name}` cannot go on", code="X0705")
    return pipeline.passes[stages.index(begun[1]) + 1 :]


def _override(
    backend: BackendBase, pipeline: Pipeline
) -> Callable[[str, str | None, ModuleOp], None]:
    """Return a function that may replace the module after a pass (XETL_OVERRIDE)."""
    if config.override is None:
        return lambda name, stage, module: None
    asked: Any = import_whole("xetl.override")
    return asked.override_for(backend, pipeline.names()).replace


def lowered(module: ModuleOp, backend: BackendBase, target: str) -> ModuleOp:
    """Return the module after all passes; the backend makes code of it."""
    for step in lower(module, backend, target):
        module = step.module
    return module


def verify_step(module: ModuleOp, stage: str | None, after: str) -> None:
    """Verify a module where most stages begin; after each pass if `config.verify`."""
    begins = stage is not None and find_stage(stage).is_verified
    try:
        if begins or config.verify:
            module.verify()
        if stage is not None:
            check_stage(module, stage)
    except VerifyException as error:
        raise InternalError(f"pass `{after}` left a wrong module: {error}") from error


class Dump:
    """Prints IR to stderr: ``after:<pass or stage>`` in `config.dump`, or ``all``."""

    def __init__(self, backend: str, known: Sequence[str]) -> None:
        """Warn about names that are not ``known``; another backend may have them."""
        parts = (config.dump or "").split(",")
        self._wanted = {part.strip().removeprefix("after:") for part in parts} - {""}
        for name in sorted(self._wanted - {*known, "all"}):
            listed = ", ".join(known)
            _print(f"// XETL_DUMP: `{backend}` has no `{name}`; there are {listed}")

    def show(self, name: str, stage: str | None, module: ModuleOp) -> None:
        """Print the module after a pass if that is wanted."""
        if self._wanted & {name, stage, "all"}:
            _print(f"// after {name}\n{module!s}")


def _print(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - asked for


_RESOLVES = "propagate-wg-maps"


def report_map_conflicts(module: ModuleOp, passes: Sequence[ModulePass]) -> None:
    """Leave remarks where maps that a user gave disagree, if no pass resolves them.

    The kernel is written for hardware on which they cost something. The passes run on
    a copy of the module, at stage ``xetile``; what cannot be followed is a remark, too:
    it is no reason not to run the kernel.
    """
    resolves = any(each.name == _RESOLVES for each in passes)
    if resolves or not any(maps_may_meet(op) for op in module.ops):
        return
    copy, context = module.clone(), Context()
    to_maps = (LaterPass("normalize-tiles"), CanonicalizePass(), CSEPass())
    try:
        for each in (*to_maps, LaterPass(_RESOLVES)):
            each.apply(context, copy)
    except InternalError:
        raise
    except XetlError as error:
        remark(module, "maps", f"the maps could not be followed: {error}")


@contextmanager
def refuse_deep_nesting(kernel: str, file: str) -> Generator[None]:
    """Turn a RecursionError of the compiler into an error about the kernel."""
    try:
        yield
    except RecursionError:
        help_ = "split it: branches and dependent operations stand in one another"
        raise SyntaxNotSupportedError(
            f"`{kernel}` is nested too deeply", code="X0408", file=file, help=help_
        ) from None
