"""The base classes of backends and of compiled kernels, and the lookup by name.

This file imports nothing heavy: a launch whose code is in the disk cache needs it, but
neither xDSL nor LLVM.
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
"""Bytes of shared memory of a workgroup if no device sets a limit."""

GROUP = "xetl.backends"
"""Entry points of packages that offer backends."""

PREFIX = "xetl_"
"""A backend in a package called `xetl_<name>` is found without entry points: reading
them takes 20 ms, a third of the time to the first result of a process."""

DEFAULT_BACKEND = "cpu"
INTERPRETER = "reference"

_finding = late("xetl.findings", "Finding")


@record(frozen=True, eq=False)
class DeviceMemory:
    """Memory that belongs to a device (USM of SYCL), as its owner describes it.

    Attributes:
        owner: the name of the device in errors, such as ``xpu:0``.
        queue: the queue of its owner: a `dpctl.SyclQueue`, a stream of torch, or None.
        is_reachable: whether the host may read and write it.
    """

    owner: str
    queue: object
    is_reachable: bool


@record(frozen=True, eq=False)
class ArrayView:
    """An array argument as a backend sees it: address, dtype, shape and strides.

    Attributes:
        address: the address of the element ``[0, 0, ...]``.
        shape: number of elements in each dimension.
        strides: distance between neighbours in each dimension, in elements.
        readonly: whether the owner forbids writing.
        obj: the object that the user passed; a reference to it keeps the memory alive.
        memory: the device memory that it lies in; None: host memory.
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
        payload: the code; `BackendBase.load` makes an executable of it.
        meta: facts about the code, JSON only. Every backend gives ``"stored"``: the
            indices (among the array and scalar parameters, constants left out) of the
            arrays that the kernel writes.
    """

    payload: bytes
    meta: Mapping[str, Any]

    @property
    def stored(self) -> frozenset[int]:
        """Indices of the runtime arguments that the kernel writes."""
        return frozenset(cast("Sequence[int]", self.meta.get("stored", ())))


@record(frozen=True)
class Expected:
    """The estimate that a cost model makes of a launch.

    Attributes:
        machine: the name of the machine.
        seconds: the time of the launch.
        limit: the resource that limits it, such as ``memory``.
        part: the reached fraction of the peak of ``whole``.
        whole: the unit whose peak counts for this kernel: the matrix unit, or memory.
        tflops: the rate of matrix products, 10^12 operations a second.
        gbytes: the rate of memory, 10^9 bytes a second.
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
        """Return when the kernel has run; a LaunchError if it failed."""


class Place(Protocol):
    """The queue that a launch runs on, for a backend whose devices have queues."""

    @property
    def target(self) -> str:
        """The compiler's target for its device and the arrays of the launch."""
        ...


class Executable(ABC):
    """A kernel that can be run."""

    @property
    def fast(self) -> Callable[..., int] | None:
        """A fast launch function for the usual arguments; None if there is none.

        Its arguments are the three sizes of the grid, then the user's own objects: one
        for each parameter in order (trailing constants may be left out). It returns 0
        if the kernel has run. Otherwise nothing was written: call `launch`.
        """
        return None

    @property
    def is_fast_at_hand(self) -> bool:
        """Whether ``fast`` is cheap to get: nothing has to be compiled for it."""
        return True

    @property
    def fast_prepacked(self) -> Callable[..., int] | None:
        """The same as ``fast`` for calls with a `xetl.prepacked.Prepacked` argument."""
        return None

    def numba_call(
        self, name: str, grid: tuple[int, int, int] | Callable[[Any], Any]
    ) -> Callable[..., None]:
        """Return a function that numba code can call with the kernel's arguments.

        Raises:
            LaunchError: numba code cannot call this kernel.
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

    compile_part: Callable[[str], Artifact]  # takes one of ``meta["parts"]``

    @abstractmethod
    def submit(
        self, grid: tuple[int, int, int], args: Arguments, place: Place
    ) -> Event:
        """Start the kernel on ``args`` (constants left out); return its event."""

    def fast_at(self, place: Place, *, waits: bool) -> Callable[..., Any] | None:
        """Return `fast` for a queue; without waiting it returns the event, not 0."""
        return None


class RecordedLaunch(NamedTuple):
    """A launch that has run; ``args`` leave out constants.

    Attributes:
        stored: the indices of the arguments that the kernel writes.
    """

    executable: Executable
    grid: tuple[int, int, int]
    args: Arguments
    stored: Collection[int]


class RecordedCall(NamedTuple):
    """All launches of one call of a function, and the origin of their arrays.

    Attributes:
        given: for each argument of the call its array (as the user passed it), or the
            value that later calls must have, too; any value if ``numbers`` names it.
        numbers: for each of the last arguments of every launch the index of the
            argument of the call that it is; None: it is a constant.
        made: arrays that were made for the call, each with a function and its arguments
            that make another one.
        gives: indices, among ``given`` and then ``made``, of the returned arrays.
    """

    launches: Sequence[RecordedLaunch]
    given: Sequence[object]
    numbers: Sequence[int | None]
    made: Sequence[tuple[ArrayView, Callable[..., Any], tuple[Any, ...]]]
    gives: Sequence[int]


class BackendBase(ABC):
    """Base class of backends, which turn XeTile IR into executables.

    A backend implements the abstract methods and sets ``name`` and ``targets``; all
    others have defaults. A parameter ``target`` of a method is a result of `variant`.
    """

    name: str
    targets: Sequence[str]
    """Names of the machines that it makes code for; the first is the default."""
    runs_as: Mapping[str, str] = {}
    """Names of other machines, each with the target whose code it runs."""
    package: str = ""
    """The package whose modules ``pipeline``, ``doctor`` and ``export`` serve it."""
    stages: Sequence[str] = ()
    """Names that `kernel.ir` accepts, besides those of the passes."""
    slow_stages: Sequence[str] = ()
    """The ``stages`` that other programs make; views of all stages omit them."""
    cacheable: bool = True
    """Whether artifacts may be kept on disk."""
    stops_at_breakpoints: bool = False
    """Whether ``breakpoint()`` stops a kernel; if not, it is removed."""
    exports: bool = False
    """Whether `export` writes files."""

    def part(self, name: str) -> Any:
        """Return a module of its package, imported when it is first needed."""
        if not self.package:
            raise InternalError(f"the {self.name} backend has no `{name}`")
        return import_whole(f"{self.package}.{name}")

    # Compiling ---------------------------------------------------------------------

    @abstractmethod
    def cache_key(self, target: str) -> str:
        """Return all that code depends on besides the kernel: versions, CPU."""

    @abstractmethod
    def build(self, module: ModuleOp, signature: Signature, target: str) -> Artifact:
        """Make the code of a lowered module."""

    @abstractmethod
    def load(self, artifact: Artifact, signature: Signature) -> Executable:
        """Make an artifact runnable in this process."""

    def default_target(self) -> str:
        """Return the target of a launch that names none."""
        return self.targets[0]

    def variant(self, target: str) -> str:
        """Return the target, extended by the settings that change its code."""
        return target

    def first_part(self, target: str) -> str:
        """Return the target of the code that launches need first, by default all."""
        return target

    def slm_limit(self, target: str) -> int:
        """Return how many bytes of shared memory a workgroup may have."""
        return SLM_LIMIT

    def passes(self, target: str) -> list[ModulePass]:
        """Return the passes from stage `xetile` to the form that `build` takes."""
        return self.part("pipeline").passes(target) if self.package else []

    def stage_after(self, name: str) -> str | None:
        """Return the stage (a key of the stage table) that begins after a pass."""
        return self.part("pipeline").STAGE_AFTER.get(name) if self.package else None

    def text(
        self, module: ModuleOp, signature: Signature, target: str, stage: str
    ) -> str:
        """Return the text of a stage that is no MLIR module, such as ``asm``."""
        return self.part("pipeline").text(module, target, stage)

    # Launching ---------------------------------------------------------------------

    def place(
        self, queue: object, names: Sequence[str], args: Arguments
    ) -> Place | None:
        """Return the queue of a launch, given or found; None if it runs on the host.

        If the result is not None, `load` returns a `QueuedExecutable`.
        """
        return None

    def cores(self) -> tuple[str, int] | None:
        """Return target and number of cores of the default device; None: the host."""
        return None

    def vectors(self, target: str) -> tuple[int, int]:
        """Return the number of vector registers, and of 32-bit elements of one."""
        return 32, 16

    def products(self, target: str, dtype: str) -> tuple[str, int]:
        """Return the dtype that is multiplied, and the rows of tiles (0: no tiles)."""
        return dtype, 0

    def private_cache(self, target: str) -> int:
        """Return the bytes of the largest cache that a core has for itself."""
        return 1 << 20

    def replay(self, call: RecordedCall) -> Callable[..., Any] | None:
        """Return a function that repeats a call on the host with other arrays.

        Its arguments are a grid, which it ignores, and the arguments of the call. It
        returns the results of the call, or 1 if the call is not completely done and
        must be made again without it: an array has another type, shape or strides, or
        overlaps one that is written, or another argument has another value.
        Return None if the call cannot be repeated so.
        """
        return None

    # Tools -------------------------------------------------------------------------

    def doctor(self) -> Sequence[Finding]:
        """Return the lines of `xetl doctor` about this backend."""
        own = [_finding("targets", ", ".join(self.targets))]
        return self.part("doctor").examine() if self.package else own

    def test_devices(self) -> Sequence[TestDevice]:
        """Return the devices that `xetl doctor --gpu` tests.

        Raises:
            LaunchError: there is no driver; the help says how to get one.
        """
        return ()

    def export(
        self, module: ModuleOp, signature: Signature, target: str, name: str
    ) -> Export:
        """Return the files that `xetl compile` writes for a lowered module."""
        return self.part("export").export(module, signature, target, name)

    def expect(
        self,
        artifact: Artifact,
        grid: tuple[int, int, int] | None,
        args: Arguments | None,
    ) -> Sequence[Expected]:
        """Estimate the time of a launch on each machine of the target by a cost model.

        Autotuning compares the first estimates of all configs of a call. It does not
        try configs that are estimated to be several times slower than the best.

        Args:
            grid: the grid; None: one that fills the machine.
            args: the arguments; None: arrays with dimensions of 4096.
        """
        return ()

    def peak(self, target: str, dtype: str) -> tuple[float, float] | None:
        """Return the peak in 10^9 operations and bytes a second; None: unknown."""
        return None

    def machine_name(self, target: str) -> str:
        """Return the machine's name; tuning ignores best configs of other machines."""
        return target

    def tune_machine(self) -> Sequence[str]:
        """Measure this machine, store the numbers and return lines of a table of them.

        Raises:
            OSError: the numbers cannot be stored.
        """
        return [f"the {self.name} backend has nothing to measure"]

    def measure(self, artifact: Artifact) -> Mapping[str, object]:
        """Return facts for `Kernel.stats` that are too slow for every compilation."""
        return {}

    def opt_passes(self) -> Mapping[str, type[ModulePass]]:
        """Return its passes by name, for ``xetl-opt``."""
        return self.part("pipeline").opt_passes() if self.package else {}

    def opt_dialects(self) -> Sequence[Dialect]:
        """Return its dialects, for ``xetl-opt``."""
        return self.part("pipeline").DIALECTS if self.package else ()


@cache
def installed(package: str) -> str:
    """Return a text that changes when another version of ``package`` is installed.

    It is the time of the package's file: reading the version would take 5 ms.
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
    """Return the names of the installed backends, in alphabetical order."""
    return sorted(_known())


def _by_convention(name: str) -> BackendBase | None:
    package = PREFIX + name
    if not name.isidentifier():
        return None
    try:
        return getattr(import_whole(package), "BACKEND", None)
    except ModuleNotFoundError as error:
        if error.name != package:  # the package exists, but not one that it imports
            raise
    return None


@cache
def find_backend(name: str) -> BackendBase:
    """Import the backend called ``name``; raise a LaunchError if there is none."""
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
    """Yield the other backends that can be imported, without the interpreter."""
    for name in backend_names():
        if name in (usual.name, INTERPRETER):
            continue
        try:
            yield find_backend(name)
        except (ImportError, LaunchError):  # a package that it needs is not installed
            continue
