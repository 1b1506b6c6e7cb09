"""What a seed stands for: a kernel as text, the arrays it gets, where it runs."""

from __future__ import annotations

import ast
import linecache
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import ml_dtypes
import numpy as np

from tests.campaign.generator import MODES, OF_ALL, OF_ROWS, PLENTY, Generator
from tests.campaign.memory import COMMUTATIVE, RANKS
from tests.campaign.values import EXTENTS, FLOATS, NUMPY, SIGNED, UNSIGNED, Value

BF16: Any = np.dtype(ml_dtypes.bfloat16)
ML_TYPES: dict[str, Any] = {
    "bf16": BF16,
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
NUMPY_TYPES = NUMPY | {"f16": "float16", "f32": "float32", "f64": "float64"}
SLICES = {
    "sliced": [slice(None, None, 2)] * 3,
    "backwards": [slice(None, None, -1)] * 3,
    "turned": [slice(None), slice(None), slice(None, None, -1)],
    "upwards": [slice(None), slice(None, None, -1), slice(None)],
    "shifted": [slice(None), slice(None), slice(1, None)],
    "part": [slice(None), slice(1, -1), slice(4, -3)],
}
"""By layout which elements of a larger array of other numbers are those of a view."""
LAYOUTS = ("rows", "rows", "columns", "permuted", *SLICES)
TARGETS = {"cpu": ("host", "host", "avx2"), "xegpu": ("opencl",)}
LARGEST = {"cpu": (17, 33, EXTENTS[-1]), "xegpu": (17, 17, 33)}
"""A subgroup holds values as a whole: of 70 rows OpenCL's driver builds for minutes."""
STATEMENTS = (1, 2, 3, 4, 6)
LINES = {
    "cpu": (96, 256, 512, 513, 768, 777, 1024, 2048),
    "xegpu": (65, 96, 128, 256),
}
"""Extents of rows that are wide, or of columns that are tall."""
FEW = {"cpu": (1, 1, 2, 4, 9), "xegpu": (1, 1, 2)}
"""Their other extent."""
MOST = {"cpu": 1 << 12, "xegpu": 400}
"""Elements of what is sorted, gathered from, or put into shared memory."""
LONGER = (0, 1, 7, 16, -1, 0, 3, 15, 2, 64, -7, 33)
"""Elements that a line has more, by the number of a run."""
RUNS = {"cpu": 8, "xegpu": 3}
"""Of each kernel: a launch takes less than a compilation by far."""
NUMBERS = 4
"""The values of ``n``."""
SIZES = ("any", "any", "wide", "tall")
FIRST_SMALL = 1000
"""From this seed on some have f8e5m2 for bf16; those of tests/same_code stay."""

BLOCK_BYTES = 64
"""What block messages of GPUs want of a row and an address."""

_files = count()


@dataclass(frozen=True)
class Array:
    """An argument: small numbers and a few of any size, in memory in some order.

    ``fill`` seeds the elements; None: all are 1.  Runs of one kernel have arrays that
    begin elsewhere, with lines of other lengths; ``aligned`` ones and empty ones stay.
    """

    dtype: str
    shape: tuple[int, ...]
    layout: str = "rows"
    fill: int | None = None

    def of_run(self, run: int) -> Array:
        """What the run with this number has."""
        if self.layout == "aligned" or 0 in self.shape:
            return self
        *others, last = self.shape
        if others:
            others[-1] += run // NUMBERS
        return replace(self, shape=(*others, max(last + LONGER[run], 1)))

    def build(self, first: int = 0) -> Any:
        """A new one, ``first`` elements behind where its memory begins."""
        kind = ML_TYPES.get(self.dtype) or np.dtype(NUMPY_TYPES[self.dtype])
        if self.fill is None:
            return laid_out(np.ones(self.shape, kind), self.layout, first)
        rng = np.random.default_rng(self.fill)
        least = 0 if kind.kind == "u" else -4
        found = rng.integers(least, 5, self.shape).astype(kind)
        if kind.kind in "iu" and found.size and rng.random() < 0.5:
            info = np.iinfo(kind)
            wild = rng.integers(info.min, info.max, self.shape, kind, endpoint=True)
            wild[rng.random(self.shape) < 0.3] = info.min  # which -1 divides
            found = np.where(rng.random(self.shape) < 0.1, wild, found)
            found.flat[0], found.flat[-1] = info.min, info.max
        return laid_out(found, self.layout, first)


def laid_out(array: Any, layout: str, first: int = 0) -> Any:
    """The same elements in an array of other strides.

    ``equal``: rows all the same; ``aligned``: as GPUs take it by block messages.
    ``first``: of rows, how many elements of their memory are before them.
    """
    if layout == "rows":
        found = np.full(first + array.size, 77).astype(array.dtype)
        found = found[first:].reshape(array.shape)
        found[...] = array
        return found
    if layout == "aligned":
        memory = np.zeros(array.nbytes + BLOCK_BYTES, np.uint8)
        start = -memory.ctypes.data % BLOCK_BYTES
        found = memory[start : start + array.nbytes].view(array.dtype)
        found = found.reshape(array.shape)
        found[...] = array
        return found
    if layout == "columns":
        return np.asfortranarray(array)
    if layout == "permuted":
        order = [*range(1, array.ndim), 0]
        return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
    if layout == "equal":
        return np.broadcast_to(array[:1], array.shape)
    slices = SLICES[layout][-array.ndim :]
    room = np.full([2 * n + 9 for n in array.shape], 77).astype(array.dtype)
    view = room[tuple(slices)][tuple(slice(n) for n in array.shape)]
    view[...] = array
    return view


@dataclass(frozen=True)
class Case:
    """A kernel, its arguments and its place: all that a worker process needs.

    ``runs`` are the numbers of those it has, of which ``n`` and the arrays follow;
    ``variables`` are those of the source with a known shape and type; ``same`` gives X
    for Y too, the very same view.
    """

    source: str
    mode: str
    arrays: Mapping[str, Array]
    runs: tuple[int, ...]
    backend: str
    target: str
    grid: tuple[int, ...]
    same: bool = False
    variables: Mapping[str, Value] | None = None

    def parameters(self) -> list[str]:
        function = ast.parse(self.source).body[0]
        assert isinstance(function, ast.FunctionDef)
        return [each.arg for each in function.args.args]

    def arguments(self, run: int) -> list[Any]:
        """New arrays, in the order of the parameters."""
        arrays = {name: array.of_run(run) for name, array in self.arrays.items()}
        found: dict[str, Any] = {"n": run % NUMBERS}
        found |= {name: array.build(run) for name, array in arrays.items()}
        if self.same and "X" in found:
            found["Y"] = found["X"]
        return [found[name] for name in self.parameters()]

    def kernel(self) -> Any:
        """A kernel whose source tracebacks and the front end can read."""
        from xetl import xetile  # noqa: PLC0415 -- the runner itself compiles nothing

        file = f"<kernel {next(_files)}>"
        lines = self.source.splitlines(True)
        linecache.cache[file] = (len(self.source), None, lines, file)
        names: dict[str, Any] = {"xetile": xetile}
        exec(compile(self.source, file, "exec"), names)
        if self.mode == "subgroups":
            return xetile.kernel(subgroups=[2, 2])(names["generated"])
        return xetile.kernel(names["generated"])

    def text(self) -> str:
        """The case as a person reads it."""
        arrays = [f"#   {name}: {array}" for name, array in self.arrays.items()]
        head = f"# {self.backend}, target {self.target}, grid {self.grid}, "
        head += f"runs {self.runs}, n is run % {NUMBERS}"
        head += ", Y is X" if self.same else ""
        kind = "@xetile.kernel"
        kind += "(subgroups=[2, 2])" if self.mode == "subgroups" else ""
        return "\n".join([head, *arrays, kind, self.source])


def types(rng: random.Random) -> dict[str, str]:
    """The element type of each array; of half of all kernels, two at most."""
    pair = rng.choice((rng.sample(PLENTY, 2), ("i8", "u8"), ("i32", "f32")))
    some = rng.choice((PLENTY, pair))
    found = {name: rng.choice(some) for name in "XYZV"}
    found["W"] = rng.choice(some) if rng.random() < 0.9 else "i1"
    found["U"] = rng.choice(("f32", "f64", *SIGNED[2:], *UNSIGNED[2:]))
    return found


def arrays(
    rng: random.Random, dtypes: Mapping[str, str], make: Generator
) -> dict[str, Array]:
    """Of any extents, 0 and 1 as well; of most, tiles of the kernel fill a part."""
    found: dict[str, Array] = {}
    for name, rank in RANKS.items():
        odd = rng.random() < 0.2
        shape = [
            rng.choice((0, 1, 1, 2, 3)) if odd else rng.randrange(2, 50)
            for _ in range(rank)
        ]
        if rank == 3:
            shape[0] = rng.choice((1, 2, 3))
        if make.columns != make.extents and not odd:
            shape[-1] = max(make.shapes[0]) * rng.choice((1, 1, 2, 3))
            shape[-1] = max(shape[-1] + rng.choice((0, 0, 1, -1, 5, -30, 16)), 1)
            shape[-2:] = shape[-2:][:: rng.choice((1, 1, -1))]
        layout = rng.choice(LAYOUTS)
        if make.mode != "one" and name in "XYWV" and rng.random() < 0.05:
            layout = "equal"
        found[name] = Array(dtypes[name], tuple(shape), layout, rng.getrandbits(32))
    return found


def aligned(array: Array) -> Array:
    """The array with rows of whole blocks, unless its layout is of some other kind."""
    if array.layout != "rows" or len(array.shape) < 2:
        return array
    *others, last = array.shape
    shape = (*others, -(-last // BLOCK_BYTES) * BLOCK_BYTES)
    return replace(array, shape=shape, layout="aligned")


def of_seed(seed: int, backend: str = "cpu", target: str | None = None) -> Case:
    """The case of a seed: always the same one, whatever ran before."""
    rng = random.Random(seed)
    mode, dtypes, same = rng.choice(MODES), types(rng), rng.random() < 0.1
    if same:
        dtypes["Y"] = dtypes["X"]
    if seed >= FIRST_SMALL and seed % 4 == 0:
        dtypes = {k: "f8e5m2" if v == "bf16" else v for k, v in dtypes.items()}
    largest = rng.choice(LARGEST[backend])
    extents = [each for each in EXTENTS if each <= largest]
    make = Generator(rng, mode=mode, dtypes=dtypes, extents=extents, columns=extents)
    make.most = MOST[backend]
    if (size := rng.choice(SIZES)) != "any":
        make.extents, make.columns = FEW[backend], LINES[backend]
        make.tall = size == "tall"
        make.statements = rng.choice((OF_ALL, OF_ROWS))
    atomics = COMMUTATIVE[:3] if dtypes["U"] in FLOATS else COMMUTATIVE
    make.kind, make.turned = rng.choice(atomics), rng.random() < 0.3
    source = make.generate(rng.choice(STATEMENTS))
    found = arrays(rng, dtypes, make)
    if seed >= FIRST_SMALL and seed % 3 == 0:
        found = {name: aligned(array) for name, array in found.items()}
    if same:
        found["Y"] = found["X"]
    runs = tuple(rng.sample(range(len(LONGER)), RUNS[backend]))
    target = target or rng.choice(TARGETS[backend])
    variables = {value.name: value for value in make.known}
    return Case(source, mode, found, runs, backend, target, make.grid, same, variables)
