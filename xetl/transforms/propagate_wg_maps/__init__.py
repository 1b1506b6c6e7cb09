"""Give every vector of rank 2 a map: which subgroup owns which part of it.

*What*: maps that the user gave (of tiles, operations, products) go backwards to what
makes their operands, by the rules of the RFC, and forwards to what has none; the rest
is chosen by a cost model.  Where two maps meet and differ a ``tile_conv_layout`` is put
in, at the cheapest place; a remark says so, and a warning where both were given.
*Why*: from here on each operation says alone what a subgroup does of it.
*Left alone*: kernels at subgroup level; values that are no vectors of rank 2 (every
subgroup holds all of them); scatter tiles of rank 1.

before: %v = load_tile %t : tile<256x32>        (no map)
        %d = tile_mma %v, %w {wg_map_c = ([8, 4]; [32, 64])}
after:  %v = load_tile %t : tile<256x32, wg_map = ([8, 4]; [32, 32])>

Source: XeTile RFC, "Workgroup Level XeTile extension"; docs/xetile.md, section 5; the
parts are in ``maps/``: rules, graph, search, choose, write.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xetl.devices import Device, find_device
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP
from xetl.dialects.upstream import func, gpu
from xetl.dialects.walk import operations_in
from xetl.transforms.propagate_wg_maps.graph import Graph
from xetl.transforms.propagate_wg_maps.search import find_maps
from xetl.transforms.propagate_wg_maps.write import Writer


@dataclass(frozen=True)
class PropagateWgMapsPass(ModulePass):
    """See the module.

    Attributes:
        device: for which maps are chosen.
    """

    name = "propagate-wg-maps"

    device: str = "pvc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the kernels of a module in place."""
        kernels = operations_in(op, *_FUNCTIONS)
        for kernel in kernels:
            if kernel.attributes.get(LEVEL) != StringAttr(SUBGROUP):
                propagate(kernel, find_device(self.device))


_FUNCTIONS = (gpu.FuncOp, func.FuncOp)


def propagate(kernel: Operation, device: Device) -> None:
    """Find the maps of one kernel and write them."""
    graph = Graph(kernel)
    team = find_maps(graph, device)
    if team is not None:
        Writer(graph, team).write(kernel)
