"""Facts of a compiled program, from its artifact, and the arguments of its kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
        argument: the index of the argument.
        row: the dimension of its rows; -1: the matrix is one row.
        column: the dimension along a row, whose stride is 1.
        step: the base, and the strides between its matrices, must be multiples of so
            many bytes.
        sliced: whether matrices begin at any row, so that the stride of rows is one of
            these strides.
        folded: if the array, of one dimension, is a matrix of rows of 64 bytes: its
            bytes must be a multiple of this; else 0.
    """

    argument: int
    row: int
    column: int
    step: int = limits.BASE_ALIGNMENT
    sliced: bool = False
    folded: int = 0


@dataclass(frozen=True)
class KernelFacts:
    """One kernel of a program.

    Attributes:
        lanes: the lanes of a workgroup along x, y and z.
        surfaces: the matrices that must fit block messages before a launch.
        spirv: the position of its program in the artifact.
        log: how to read its prints, its failed checks, and the messages that an
            emulated device refuses; empty if it writes no log.
    """

    name: str
    lanes: Grid
    surfaces: tuple[Surface, ...]
    spirv: slice
    log: tuple[Mapping[str, Any], ...]

    @property
    def tells(self) -> bool:
        """Whether the kernel prints or asserts."""
        return any(entry["error"] != limits.REFUSED for entry in self.log)


@dataclass(frozen=True)
class ArgumentFacts:
    """What a kernel gets for an argument.

    Attributes:
        kind: ``array``, or the type of a number: ``i64``, ``f64``, ``f32``.
        sizes: the dimensions of the array whose size the kernel gets.
        strides: the dimensions of the array whose stride it gets.
    """

    kind: str
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class CodeFacts:
    """One or two variants of a kernel; a launch takes the first that fits its arrays.

    Attributes:
        target: the target of the compilation.
        kernels: the variants, that with block messages first. The last one takes any
            arrays, unless there are ``parts``.
        stored: indices of the arrays that are written.
        slm_bytes: bytes of shared local memory of a workgroup.
        grf: the number of registers of a thread that was planned.
        needs: dtypes that the device must compute with.
        parts: targets of variants that are not compiled yet; the last takes any arrays.
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
        """The user's name of the kernel."""
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


NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "i64": ctypes.c_int64,
    "f64": ctypes.c_double,
    "f32": ctypes.c_float,
}
"""The ctypes type of a number, by the kind of the argument."""


def choose_kernel(
    facts: CodeFacts, grid: Grid, args: Sequence[Argument], padded: Collection[int] = ()
) -> tuple[KernelFacts | None, str | None]:
    """Return the first kernel that fits a launch, and why earlier ones do not.

    Return None for the kernel if it is one of the ``parts``.

    Args:
        padded: indices of the arrays whose rows are padded with zeros.
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


def choose_part(facts: CodeFacts, grid: Grid, args: Sequence[Argument]) -> str:
    """Return which of the ``parts`` to compile if no kernel fits the launch."""
    kernel = facts.kernels[0]
    rows = [replace(each, folded=limits.WIDTH_STEP) for each in kernel.surfaces]
    found = _why_not(replace(kernel, surfaces=tuple(rows)), grid, args, ())
    # Without a part between them the first is also the last.
    return facts.parts[0 if found is None else -1]


def _why_not(
    kernel: KernelFacts, grid: Grid, args: Sequence[Argument], padded: Collection[int]
) -> str | None:
    if kernel.surfaces and not fits_messages(grid):
        return f"a grid of {grid} has more programs than they count"
    for surface in kernel.surfaces:
        view = cast("ArrayView", args[surface.argument])
        # `rotate-loops` relies on this check: no array is empty.
        is_padded = surface.argument in padded
        reason = why_no_surface(surface, view, is_padded=is_padded)
        if reason is not None:
            return f"argument {surface.argument}: {reason}"
    return None


def fits_messages(grid: Grid) -> bool:
    """Whether the grid is small enough for a kernel with block messages."""
    return max(grid) <= limits.MOST_PROGRAMS and grid[0] * grid[1] < 1 << 32


def why_no_surface(
    surface: Surface, view: ArrayView, *, is_padded: bool = False
) -> str | None:
    """Return why block messages cannot move an array. Return None if they can.

    Args:
        surface: how the kernel moves the array.
        is_padded: whether zeros follow the rows, so that messages may read past them.
    """
    if 0 in view.shape:
        return "it is empty"
    row, column = surface.row, surface.column
    strides = [stride * view.dtype.itemsize for stride in view.strides]
    width = view.shape[column] * view.dtype.itemsize
    if surface.folded:
        if width % surface.folded:
            return f"its {width} bytes are no multiple of {surface.folded}"
        pitch = limits.LEAST_WIDTH
        rows, width = width // pitch, min(width, pitch)
        return limits.why_no_blocks(view.address, width, rows, pitch)
    if is_padded:
        width = max(limits.LEAST_WIDTH, width + -width % limits.WIDTH_STEP)
    if row < 0:  # the kernel computes a pitch
        rows, pitch = 1, width + -width % limits.LEAST_PITCH + limits.BASE_ALIGNMENT
    else:
        rows, pitch = view.shape[row], strides[row]
    others = set(range(len(strides) if row >= 0 else 0)) - {column}
    if not surface.sliced:
        others.discard(row)
    leading = tuple(strides[dim] for dim in others if view.shape[dim] > 1)
    matrix = view.address, width, rows, pitch, leading
    return limits.why_no_blocks(*matrix, step=surface.step)


def words_of(facts: ArgumentFacts, arg: Argument) -> list[Any]:
    """Return the words that a kernel gets for one argument, as ctypes for dpctl."""
    if not isinstance(arg, ArrayView):
        return [NUMBERS[facts.kind](arg)]
    numbers = [
        arg.address,
        *(arg.shape[dim] for dim in facts.sizes),
        *(arg.strides[dim] for dim in facts.strides),
    ]
    return [ctypes.c_int64(number) for number in numbers]


def ranges(grid: Grid, lanes: Grid) -> tuple[list[int], list[int]]:
    """Return global and local range in SYCL's order: x comes last."""
    whole = [programs * lane for programs, lane in zip(grid, lanes)]
    return whole[::-1], list(lanes[::-1])
