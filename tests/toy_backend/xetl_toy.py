"""A whole backend in a hundred lines: elementwise kernels as Python text for NumPy.

`build` writes a line of Python for each operation; the text is the code that is kept in
the cache. `load` runs the text, which defines a function, and a launch calls it for
each program of the grid. An operation without a rule is an error that names it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from xetl.analysis.memory import stored_arguments
from xetl.backend import Argument, ArrayView, Artifact, BackendBase, Executable
from xetl.dialects import xetile
from xetl.dialects.upstream import arith, gpu, memref, vector
from xetl.errors import LaunchError
from xetl.language.signature import Signature

Names = dict[SSAValue, str]
Rule = Callable[[Any, list[str]], str]
BINARY = {arith.AddfOp: "+", arith.MulfOp: "*", arith.AddiOp: "+", arith.MuliOp: "*"}


def _constant(op: Any, _: list[str]) -> str:
    value = op.value
    dense = isinstance(value, DenseIntOrFPElementsAttr)
    return repr(value.get_values()[0] if dense else value.value.data)


def _tile(op: xetile.InitTileOp, names: list[str]) -> str:
    dynamic = iter(names[1:])
    offsets = [o if isinstance(o, int) else next(dynamic) for o in op.mixed_offsets]
    rows, columns = op.result.type.shape
    return f"({names[0]}, {offsets[0]}, {offsets[1]}, {rows}, {columns})"


RULES: dict[type[Operation], Rule] = {
    **{op: lambda _, n, s=sign: f"{n[0]} {s} {n[1]}" for op, sign in BINARY.items()},
    arith.ConstantOp: _constant,
    arith.IndexCastOp: lambda _, names: names[0],
    arith.TruncfOp: lambda _, names: f"numpy.float32({names[0]})",
    gpu.BlockIdOp: lambda op, _: f"program[{op.axis}]",
    memref.ExtractStridedMetadataOp: lambda _, n: f"(None, 0, *{n[0]}.shape, 0, 0)",
    vector.BroadcastOp: lambda _, names: names[0],
    xetile.InitTileOp: _tile,
    xetile.LoadTileOp: lambda _, names: f"load(*{names[0]})",
    xetile.StoreTileOp: lambda _, names: f"store({names[0]}, *{names[1]})",
}


def load(array: Any, row: int, column: int, rows: int, columns: int) -> Any:
    inside = array[row : row + rows, column : column + columns]
    missing = rows - inside.shape[0], columns - inside.shape[1]
    return np.pad(inside, [(0, missing[0]), (0, missing[1])])


def store(value: Any, array: Any, row: int, column: int, *shape: int) -> None:
    inside = array[row : row + shape[0], column : column + shape[1]]
    inside[...] = np.broadcast_to(value, shape)[tuple(map(slice, inside.shape))]


def python_text(function: gpu.FuncOp) -> str:
    block = function.body.block
    names: Names = {arg: f"a{i}" for i, arg in enumerate(block.args)}
    lines = [f"def kernel(program, {', '.join(names.values())}):"]
    for op in list(block.ops)[:-1]:
        rule = RULES.get(type(op))
        if rule is None:
            raise LaunchError(f"toy cannot compile `{op.name}`", code="X0811")
        results = [f"v{len(names) + i}" for i in range(len(op.results))]
        text = rule(op, [names[operand] for operand in op.operands])
        lines.append(f"    {', '.join(results)}{' = ' if results else ''}{text}")
        names.update(zip(op.results, results))
    return "\n".join(lines)


class ToyExecutable(Executable):
    def __init__(self, text: str) -> None:
        space: dict[str, Any] = {"numpy": np, "load": load, "store": store}
        exec(text, space)
        self._kernel = space["kernel"]

    def launch(self, grid: tuple[int, int, int], args: Sequence[Argument]) -> None:
        values = [_array(a) if isinstance(a, ArrayView) else a for a in args]
        for program in product(*map(range, grid)):
            self._kernel(program, *values)


def _array(view: ArrayView) -> Any:
    size, dtype = view.dtype.itemsize, np.dtype(view.dtype.name.replace("f", "float"))
    reach = 1 + sum((n - 1) * s for n, s in zip(view.shape, view.strides))
    memory = (ctypes.c_char * (reach * size)).from_address(view.address)
    strides = [stride * size for stride in view.strides]
    return np.ndarray(view.shape, dtype, memory, strides=strides)


class ToyBackend(BackendBase):
    name, targets, stages = "toy", ("python",), ("python",)

    def cache_key(self, target: str) -> str:
        return f"toy 1 numpy={np.__version__}"

    def passes(self, target: str) -> list[ModulePass]:
        return []  # operations are written as the front end leaves them

    def build(self, module: ModuleOp, signature: Signature, target: str) -> Artifact:
        function = next(op for op in module.walk() if isinstance(op, gpu.FuncOp))
        text = python_text(function)
        return Artifact(text.encode(), {"stored": stored_arguments(function)})

    def text(
        self, module: ModuleOp, signature: Signature, target: str, stage: str
    ) -> str:
        return self.build(module, signature, target).payload.decode()

    def load(self, artifact: Artifact, signature: Signature) -> Executable:
        return ToyExecutable(artifact.payload.decode())


BACKEND = ToyBackend()
