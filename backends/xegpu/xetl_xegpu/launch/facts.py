"""What the compiler says about a program, from its artifact; how it is called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xetl.backend import Argument, ArrayView
from xetl.devices import find_device
from xetl.errors import InternalError
from xetl_xegpu import limits

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Surface:
    """A matrix that a kernel moves by block messages.

    Attributes:
        argument: which of the arguments it is.
        row: the dimension of its rows; -1: it is one row.
        column: the dimension along a row, whose stride is 1.
        step: bytes that its base, and where its matrices begin, are multiples of.
    """

    argument: int
    row: int
    column: int
    step: int = limits.BASE_ALIGNMENT


@dataclass(frozen=True)
class KernelFacts:
    """One kernel of a program.

    Attributes:
        lanes: of a workgroup along x, y and z.
        surfaces: what must fit block messages for it to be launched.
        spirv: where its program is in the artifact.
        log: how to read its prints and failed checks, and the messages that an
            emulated device refuses; none if it writes nothing.
    """

    name: str
    lanes: Grid
    surfaces: tuple[Surface, ...]
    spirv: slice
    log: tuple[Mapping[str, Any], ...]

    @property
    def tells(self) -> bool:
        """Whether it prints or asserts."""
        return any(entry["error"] != limits.REFUSED for entry in self.log)


@dataclass(frozen=True)
class ArgumentFacts:
    """What a kernel gets for an argument.

    Attributes:
        kind: ``array``, or the type of a number: ``i64``, ``f64``, ``f32``.
        sizes: dimensions of the array whose size it gets.
        strides: dimensions whose stride it gets.
    """

    kind: str
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class CodeFacts:
    """The same kernel once or twice, the first that fits the arrays is launched.

    Attributes:
        target: what it was compiled for.
        kernels: the most demanding first; the last one takes anything, or a part does.
        stored: indices of the arrays that are written.
        slm_bytes: shared local memory of a workgroup.
        grf: registers of a thread it was planned for.
        needs: dtypes that the device must compute with.
        parts: what else can be compiled: it takes any arrays.
    """

    target: str
    kernels: tuple[KernelFacts, ...]
    arguments: tuple[ArgumentFacts, ...]
    stored: frozenset[int]
    slm_bytes: int
    grf: int
    needs: frozenset[str]
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.kernels[-1].name.removesuffix(limits.UNALIGNED)

    @property
    def is_large(self) -> bool:
        """Whether threads have the large register file."""
        return self.grf > min(find_device(self.target).registers)

    @property
    def lanes(self) -> int:
        """Lanes of a workgroup."""
        x, y, z = self.kernels[-1].lanes
        return x * y * z


def facts_of(meta: Mapping[str, Any]) -> CodeFacts:
    """Read what `xetl_xegpu.pipeline` wrote."""
    return CodeFacts(
        target=find_device(meta["target"]).name,
        kernels=tuple(_kernels(meta["kernels"])),
        arguments=tuple(
            ArgumentFacts(kind, tuple(sizes), tuple(strides))
            for kind, sizes, strides, _ in meta["arguments"]
        ),
        stored=frozenset(meta["stored"]),
        slm_bytes=meta["slm_bytes"],
        grf=meta["grf"],
        needs=frozenset(meta["needs"]),
        parts=tuple(meta.get("parts", ())),
    )


def _kernels(described: Sequence[Mapping[str, Any]]) -> Iterator[KernelFacts]:
    start = 0
    for each in described:
        x, y, z = each["lanes"]
        surfaces = tuple(Surface(*numbers) for numbers in each["surfaces"])
        end = start + each["bytes"]
        log = tuple(each["log"])
        yield KernelFacts(each["name"], (x, y, z), surfaces, slice(start, end), log)
        start = end


_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "i64": ctypes.c_int64,
    "f64": ctypes.c_double,
    "f32": ctypes.c_float,
}


def choose_kernel(
    facts: CodeFacts, grid: Grid, args: Sequence[Argument], padded: Collection[int] = ()
) -> tuple[KernelFacts | None, str | None]:
    """The first kernel that this launch fits, and why it is not the first of all.

    None where one of the ``parts`` has it.

    Args:
        padded: indices of the arrays that have zeros behind their rows.
    """
    reason = None
    for kernel in facts.kernels:
        found = _why_not(kernel, grid, args, padded)
        if found is None:
            return kernel, reason
        reason = reason or found
    if facts.parts:
        return None, reason
    raise InternalError(f"no kernel of `{facts.name}` takes these arrays: {reason}")


def _why_not(
    kernel: KernelFacts, grid: Grid, args: Sequence[Argument], padded: Collection[int]
) -> str | None:
    if kernel.surfaces and not fits_messages(grid):
        return f"a grid of {grid} has more programs than they count"
    for surface in kernel.surfaces:
        view = cast("ArrayView", args[surface.argument])
        # `rotate-loops` counts on it, and no message can say that a row has nothing.
        is_padded = surface.argument in padded
        reason = why_no_surface(surface, view, is_padded=is_padded)
        if reason is not None:
            return f"argument {surface.argument}: {reason}"
    return None


def fits_messages(grid: Grid) -> bool:
    """Whether a kernel that moves blocks by messages may run so many programs."""
    return max(grid) <= limits.MOST_PROGRAMS and grid[0] * grid[1] < 1 << 32


def why_no_surface(
    surface: Surface, view: ArrayView, *, is_padded: bool = False
) -> str | None:
    """What keeps block messages from an array; None: nothing does.

    Args:
        surface: how a kernel moves it.
        is_padded: whether rows may be taken for a little longer than they are.
    """
    if 0 in view.shape:
        return "it is empty"
    row, column = surface.row, surface.column
    strides = [stride * view.dtype.itemsize for stride in view.strides]
    width = view.shape[column] * view.dtype.itemsize
    if is_padded:
        width = max(limits.LEAST_WIDTH, width + -width % limits.WIDTH_STEP)
    if row < 0:  # the kernel makes up a pitch
        pitch = width + -width % limits.LEAST_PITCH + limits.BASE_ALIGNMENT
        return limits.why_no_blocks(view.address, width, 1, pitch, step=surface.step)
    leading = [
        stride
        for dim, stride in enumerate(strides)
        if dim not in (row, column) and view.shape[dim] > 1
    ]
    return limits.why_no_blocks(
        view.address,
        width,
        view.shape[row],
        strides[row],
        tuple(leading),
        step=surface.step,
    )


def number_of(facts: ArgumentFacts) -> Callable[[Any], Any]:
    """What makes the word of an argument that is a number."""
    return _NUMBERS[facts.kind]


def words_of(facts: ArgumentFacts, arg: Argument) -> list[Any]:
    """What a kernel gets for one argument, as dpctl takes it."""
    if not isinstance(arg, ArrayView):
        return [number_of(facts)(arg)]
    numbers = [
        arg.address,
        *(arg.shape[dim] for dim in facts.sizes),
        *(arg.strides[dim] for dim in facts.strides),
    ]
    return [ctypes.c_int64(number) for number in numbers]


def ranges(grid: Grid, lanes: Grid) -> tuple[list[int], list[int]]:
    """Global and local range as SYCL orders them: x comes last."""
    whole = [programs * lane for programs, lane in zip(grid, lanes)]
    return whole[::-1], list(lanes[::-1])
