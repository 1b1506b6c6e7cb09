"""Loads as the first RFC has them."""

from __future__ import annotations

from xdsl.ir import Operation

from xetl.dialects.xetile import LoadTileOp, TileTransposeOp
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values


def _transposing(b: Builder, op: LoadTileOp) -> Values | None:
    if op.permutation is None:
        return None
    load = LoadTileOp(op.tile, op.padding, attributes=dict(op.attributes))
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        if name in op.properties:
            load.properties[name] = op.properties[name]
    return [b.insert(TileTransposeOp(b.insert(load)))]


RULES: dict[type[Operation], Rule] = {LoadTileOp: _transposing}
