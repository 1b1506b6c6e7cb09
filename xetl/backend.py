"""What a backend is, what it makes of a kernel, and how one is found by its name.

Nothing heavy is imported here: a launch whose code is in the disk cache comes through
this file without loading xDSL or LLVM.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

from xetl.errors import InternalError, LaunchError
from xetl.imports import import_whole, late
from xetl.records import record

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Dialect
    from xdsl.passes import ModulePass

    from xetl.findings import Export, Finding, TestDevice
    from xetl.language.dtypes import DType
    from xetl.language.signature import Signature

SLM_LIMIT = 1 << 20
"""Bytes of shared memory of a workgroup where no device sets a limit."""

GROUP = "xetl.backends"
"""Entry points of packages that offer backends."""

PREFIX = "xetl_"
"""A package called so and the backend's name needs no look at the entry points, which
takes 20 ms: a third of the way to the first result of a process."""

DEFAULT_BACKEND = "cpu"
INTERPRETER = "reference"

_finding = late("xetl.findings", "Finding")


@record(frozen=True, eq=False)
class DeviceMemory:
    """Memory that belongs to a device (USM of SYCL), as its owner states it.

    Attributes:
        owner: what an error calls it, such as ``xpu:0``.
        queue: where its owner works: a `dpctl.SyclQueue`, a stream of torch, or None.
        is_reachable: whether the host may read and write it.
    """

    owner: str
    queue: object
    is_reachable: bool


@record(frozen=True, eq=False)
class ArrayView:
    """An array argument as a backend sees it: where it is and how it is laid out.

    Attributes:
        address: of the element ``[0, 0, ...]``, in bytes.
        shape: number of elements in each dimension.
        strides: distance between neighbours in each dimension, in elements.
        readonly: whether the owner forbids writing.
        obj: what the user passed; keeping it keeps the memory alive.
        memory: of which device it is; None: the host's.
    """

    address: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    readonly: bool
    obj: object = field(repr=False)
    memory: DeviceMemory | None = field(default=None, repr=False)


Argument = ArrayView | int | float
Arguments: TypeAlias = Sequence[Argument]


@record(frozen=True)
class Artifact:
    """A compiled kernel as the disk cache keeps it.

    Attributes:
        payload: what `BackendBase.load` makes an executable of.
        meta: facts about it, JSON only. Keys every backend gives: ``"stored"``, the
            indices (among the array and scalar parameters, constants left out) of the
            arrays the kernel writes.
    """

    payload: bytes
    meta: Mapping[str, Any]

    @property
    def stored(self) -> frozenset[int]:
        """Indices of the runtime arguments that the kernel writes."""
        return frozenset(cast("Sequence[int]", self.meta.get("stored", ())))


@record(frozen=True)
class Expected:
    """What a model of costs expects of a launch.

    Attributes:
        machine: on which.
        seconds: it takes.
        limit: what it waits for, such as ``memory``.
        part: of the peak of ``whole``, the share that is reached.
        whole: what counts for this kernel: the matrix unit, or memory.
        tflops: of products, 10^12 operations a second.
        gbytes: billions of bytes a second, of memory.
    """

    machine: str
    seconds: float
    limit: str
    part: float
    whole: str
    tflops: float
    gbytes: float

    def __str__(self) -> str:
        rate = f"{self.tflops:.0f} TFLOP/s, " if self.tflops >= 1 else ""
        return (
            f"{self.machine}: expected {self.part:.0%} of the peak of {self.whole} "
            f"({rate}{self.gbytes:.0f} GB/s), limited by {self.limit}"
        )


class Event(Protocol):
    """The event that a launch with ``wait=False`` returns."""

    @property
    def done(self) -> bool:
        """Whether the kernel has run."""
        ...

    def wait(self) -> None:
        """Return when the kernel has run.

        Raises:
            LaunchError: it did not end well.
        """


class Place(Protocol):
    """Where a launch runs, on a backend whose devices have queues."""

    @property
    def target(self) -> str:
        """What its device is, for the compiler."""
        ...


class Executable(ABC):
    """A kernel that can be run."""

    @property
    def fast(self) -> Callable[..., int] | None:
        """A shortcut for the usual arguments, or ``None`` if there is none.

        It is called with the three sizes of the grid and the user's own objects, one
        for each parameter in order (trailing constants may be left out). 0 means done;
        anything else that nothing was written and `launch` must be used.
        """
        return None

    @property
    def is_fast_at_hand(self) -> bool:
        """Whether ``fast`` costs next to nothing: nothing must be compiled for it."""
        return True

    @property
    def fast_prepacked(self) -> Callable[..., int] | None:
        """As ``fast``, for calls with a `xetl.prepacked.Prepacked` argument."""
        return None

    def numba_call(
        self, name: str, grid: tuple[int, int, int] | Callable[[Any], Any]
    ) -> Callable[..., None]:
        """A function that code of numba calls with the arguments of the kernel.

        Raises:
            LaunchError: there can be none.
        """
        raise LaunchError(
            f"code of numba cannot call `{name}`: it runs on another backend than"
            " `cpu`, or prints or asserts, which only a launch from Python can show",
            code="X0843",
            help='pass backend="cpu"; leave out `device_print` and `device_assert`',
        )

    @abstractmethod
    def launch(self, grid: tuple[int, int, int], args: Arguments) -> None:
        """Run the kernel on ``args`` (constants left out) and wait for it."""


class QueuedExecutable(Executable):
    """An executable that runs on a queue of a device."""

    compile_part: Callable[[str], Artifact]  # of the ``parts`` that ``meta`` names

    @abstractmethod
    def submit(
        self, grid: tuple[int, int, int], args: Arguments, place: Place
    ) -> Event:
        """Start the kernel on ``args`` (constants left out)."""

    def fast_at(self, place: Place, *, waits: bool) -> Callable[..., Any] | None:
        """As ``fast``, at that place; without waiting it gives the event, not 0."""
        return None


class RecordedLaunch(NamedTuple):
    """A launch that has been done.

    Attributes:
        args: arrays and numbers, constants left out.
        stored: which of them the kernel writes.
    """

    executable: Executable
    grid: tuple[int, int, int]
    args: Arguments
    stored: Collection[int]


class RecordedCall(NamedTuple):
    """All that a function has launched, and where its arrays came from.

    Attributes:
        given: of each argument an array (as the user has it), or the value that it must
            have again; numbers that may differ have any.
        numbers: which argument each of the last ones of all launches is; None: it is
            the same each time.
        made: arrays made for the call: each with a function and its arguments that
            make another one.
        gives: which of all arrays the function gives back.
    """

    launches: Sequence[RecordedLaunch]
    given: Sequence[object]
    numbers: Sequence[int | None]
    made: Sequence[tuple[ArrayView, Callable[..., Any], tuple[Any, ...]]]
    gives: Sequence[int]


class BackendBase(ABC):
    """A way of running kernels: turns XeTile IR into something executable.

    A backend implements the abstract methods and sets ``name`` and ``targets``; all
    others have defaults. Methods take for a target the result of `variant`.
    """

    name: str
    targets: Sequence[str]
    """Names of the machines it can make code for; the first is the default."""
    runs_as: Mapping[str, str] = {}
    """Other machines, each with the target whose code it runs."""
    package: str = ""
    """Whose modules ``pipeline``, ``doctor`` and ``export`` answer for it, if named."""
    stages: Sequence[str] = ()
    """Names `kernel.ir` accepts, besides those of the passes."""
    slow_stages: Sequence[str] = ()
    """Those of ``stages`` that other programs make, left out where all are shown."""
    cacheable: bool = True
    """Whether artifacts may be kept on disk."""
    stops_at_breakpoints: bool = False
    """Whether ``breakpoint()`` stops; where it does not, it is removed."""
    exports: bool = False
    """Whether `export` writes files."""

    def part(self, name: str) -> Any:
        """A module of its package, imported when it is first needed."""
        if not self.package:
            raise InternalError(f"the {self.name} backend has no `{name}`")
        return import_whole(f"{self.package}.{name}")

    # Compiling ---------------------------------------------------------------------

    @abstractmethod
    def cache_key(self, target: str) -> str:
        """All that code for ``target`` depends on besides the kernel: versions, CPU."""

    @abstractmethod
    def build(self, module: ModuleOp, signature: Signature, target: str) -> Artifact:
        """Make the code of a lowered module."""

    @abstractmethod
    def load(self, artifact: Artifact, signature: Signature) -> Executable:
        """Make an artifact runnable in this process."""

    def default_target(self) -> str:
        """The target of a launch that names none."""
        return self.targets[0]

    def variant(self, target: str) -> str:
        """The target with what settings add to it."""
        return target

    def first_part(self, target: str) -> str:
        """The target, and which part of its code launches begin with; else all."""
        return target

    def slm_limit(self, target: str) -> int:
        """Bytes of shared memory that a workgroup may have."""
        return SLM_LIMIT

    def passes(self, target: str) -> list[ModulePass]:
        """The lowering from `xetile` to the form `build` takes, in order."""
        return self.part("pipeline").passes(target) if self.package else []

    def stage_after(self, name: str) -> str | None:
        """The stage (a key of the stage table) that begins after a pass."""
        return self.part("pipeline").STAGE_AFTER.get(name) if self.package else None

    def text(
        self, module: ModuleOp, signature: Signature, target: str, stage: str
    ) -> str:
        """A stage of ``stages`` that is no MLIR module any more, such as ``asm``."""
        return self.part("pipeline").text(module, target, stage)

    # Launching ---------------------------------------------------------------------

    def place(
        self, queue: object, names: Sequence[str], args: Arguments
    ) -> Place | None:
        """The queue of a launch, given or found; None: it runs on the host.

        Where it is not None, `load` gives a `QueuedExecutable`.
        """
        return None

    def cores(self) -> tuple[str, int] | None:
        """Target and cores of the device that a launch takes; None: the host."""
        return None

    def vectors(self, target: str) -> tuple[int, int]:
        """How many vectors registers hold, and elements of 32 bits of one."""
        return 32, 16

    def products(self, target: str, dtype: str) -> tuple[str, int]:
        """What operands are multiplied as; the rows in tile registers, 0: no tiles."""
        return dtype, 0

    def replay(self, call: RecordedCall) -> Callable[..., Any] | None:
        """What repeats a call, on the host, with other arrays like the recorded ones.

        It is called with a grid, which it ignores, and the arguments, and gives what
        the function gives. 1 means that not all has been done, and that the call must
        be made anew: an array has another kind, shape or layout, or overlaps one that
        is written, or another argument has another value.
        None: there can be no such thing.
        """
        return None

    # Tools -------------------------------------------------------------------------

    def doctor(self) -> Sequence[Finding]:
        """What `xetl doctor` prints about it."""
        own = [_finding("targets", ", ".join(self.targets))]
        return self.part("doctor").examine() if self.package else own

    def test_devices(self) -> Sequence[TestDevice]:
        """The devices that `xetl doctor --gpu` tests.

        Raises:
            LaunchError: there is no driver; its help says how to get one.
        """
        return ()

    def export(
        self, module: ModuleOp, signature: Signature, target: str, name: str
    ) -> Export:
        """The files that `xetl compile` writes of a lowered module."""
        return self.part("export").export(module, signature, target, name)

    def expect(
        self,
        artifact: Artifact,
        grid: tuple[int, int, int] | None,
        args: Arguments | None,
    ) -> Sequence[Expected]:
        """What to expect of a launch on each machine of the target, by a model.

        Autotuning compares the first of them for configs of one call: what is expected
        to be several times slower is not tried.

        Args:
            grid: None: as large as fills the machine.
            args: None: sizes of 4096.
        """
        return ()

    def peak(self, target: str, dtype: str) -> tuple[float, float] | None:
        """The most that the machine does: 10^9 operations and bytes a second.

        As its maker says, or measured where it is this machine.

        Returns:
            None: nobody knows.
        """
        return None

    def machine_name(self, target: str) -> str:
        """The machine that times belong to: best configs of others do not count."""
        return target

    def tune_machine(self) -> Sequence[str]:
        """Measure this machine and keep the numbers; the lines of a table of them.

        Raises:
            OSError: they cannot be kept.
        """
        return [f"the {self.name} backend has nothing to measure"]

    def measure(self, artifact: Artifact) -> Mapping[str, object]:
        """Facts for `Kernel.stats` that take too long for every compilation."""
        return {}

    def opt_passes(self) -> Mapping[str, type[ModulePass]]:
        """Its passes by name, for ``xetl-opt``."""
        return self.part("pipeline").opt_passes() if self.package else {}

    def opt_dialects(self) -> Sequence[Dialect]:
        """Its dialects, for ``xetl-opt``."""
        return self.part("pipeline").DIALECTS if self.package else ()


@cache
def installed(package: str) -> str:
    """A text that changes when another version of ``package`` is installed.

    It is when its file was written: asking for the version takes 5 ms.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return "none"
    return str(os.stat(spec.origin).st_mtime_ns)


@cache
def _known() -> dict[str, EntryPoint]:
    metadata: Any = import_whole("importlib.metadata")
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def backend_names() -> list[str]:
    """The backends that are installed, in alphabetical order."""
    return sorted(_known())


def _by_convention(name: str) -> BackendBase | None:
    package = PREFIX + name
    if not name.isidentifier():
        return None
    try:
        return getattr(import_whole(package), "BACKEND", None)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, but something that it needs is not
            raise
    return None


@cache
def find_backend(name: str) -> BackendBase:
    """Import the backend called ``name``, and no other.

    Raises:
        LaunchError: no installed package offers it.
    """
    found = _by_convention(name)
    if found is not None:
        return found
    point = _known().get(name)
    if point is not None:
        return cast("BackendBase", point.load())
    known = ", ".join(f"`{each}`" for each in backend_names())
    problem = f"there is no backend called `{name}`"
    raise LaunchError(problem, "X0810", f"known backends: {known}")


def other_backends(usual: BackendBase) -> Iterator[BackendBase]:
    """The backends that can be imported, without the interpreter."""
    for name in backend_names():
        if name in (usual.name, INTERPRETER):
            continue
        try:
            yield find_backend(name)
        except (ImportError, LaunchError):  # what it needs is not installed
            continue
