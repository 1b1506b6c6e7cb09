"""Texts of the blocked stage, converted to XeGPU and run on lanes in NumPy."""

from __future__ import annotations

from typing import Any

from lane_interpreter import launch
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from xetl.dialects.parser import make_context, parse_module
from xetl.dialects.upstream import gpu
from xetl.transforms.legalize_text import LegalizeTextPass
from xetl.transforms.legalize_vectors import LegalizeVectorsPass
from xetl.transforms.stages import check_stage
from xetl_xegpu.lowering.convert_xetile_to_xegpu import ConvertXetileToXegpuPass

HEAD = 'builtin.module attributes {xetile.device = "pvc"} { gpu.module @m {'


def converted(kernel: str, *, blocks: bool = True) -> ModuleOp:
    """A `gpu.func` as a module at stage `xegpu`; checked.

    Args:
        kernel: its text.
        blocks: whether block messages may be used.
    """
    context = make_context()
    module = parse_module(HEAD + kernel + "}}", "kernel.mlir", context)
    module.verify()
    if not blocks:
        for op in module.walk():
            if isinstance(op, gpu.FuncOp):
                op.attributes["xegpu.no_blocks"] = UnitAttr()
    LegalizeTextPass().apply(context, module)
    LegalizeVectorsPass().apply(context, module)
    ConvertXetileToXegpuPass().apply(context, module)
    module.verify()
    check_stage(module, "xegpu")
    return module


def run(kernel: str, *values: Any, blocks: bool = True, **where: Any) -> None:
    """Run a kernel; arrays are written."""
    launch(str(converted(kernel, blocks=blocks)), *values, **where)


def count(module: ModuleOp, name: str) -> int:
    """How many operations have a name."""
    return sum(op.name == name for op in module.walk())


def array(name: str, shape: tuple[int, ...], dtype: str) -> str:
    """An argument of a kernel."""
    return f"%{name}: memref<{'x'.join(map(str, shape))}x{dtype}>"


def tile(name: str, at: str, shape: tuple[int, int], dtype: str, of: Any) -> str:
    """A line that describes a tile ``%tNAME`` of an array."""
    rows, columns = of
    return (
        f"%t{name} = xetile.init_tile %{name}[{at}] : memref<{rows}x{columns}x{dtype}>"
        f" -> {tile_type(shape, dtype)}\n"
    )


def tile_type(shape: tuple[int, int], dtype: str) -> str:
    """The type of a tile of global memory."""
    return f"!xetile.tile<{shape[0]}x{shape[1]}x{dtype}>"


def vector(shape: tuple[int, ...], dtype: str) -> str:
    """The type of a vector."""
    return f"vector<{'x'.join(map(str, shape))}x{dtype}>"


def load(name: str, shape: tuple[int, int], dtype: str, how: str = "") -> str:
    """A line that loads ``%tNAME`` as ``%vNAME``."""
    types = f"{tile_type(shape, dtype)} -> {vector(shape, dtype)}"
    return f"%v{name} = xetile.load_tile %t{name} {how} : {types}\n"


def store(value: str, name: str, shape: tuple[int, int], dtype: str) -> str:
    """A line that stores a value to ``%tNAME``."""
    types = f"{vector(shape, dtype)}, {tile_type(shape, dtype)}"
    return f"xetile.store_tile {value}, %t{name} : {types}\n"


def function(arguments: str, *lines: str) -> str:
    """A kernel of some lines."""
    return f"gpu.func @k({arguments}) kernel {{ {''.join(lines)} gpu.return }}"
