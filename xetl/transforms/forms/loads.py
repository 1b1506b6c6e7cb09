"""Loads as the first RFC has them."""

from __future__ import annotations

from xdsl.ir import Operation

from xetl.dialects.xetile import LoadTileOp, TileTransposeOp
from xetl.transforms.forms.steps import Expansion, Rule, Steps


def _transposing(op: LoadTileOp) -> Expansion | None:
    if op.permutation is None:
        return None
    steps = Steps()
    load = LoadTileOp(op.tile, op.padding, attributes=dict(op.attributes))
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        if name in op.properties:
            load.properties[name] = op.properties[name]
    return steps.done(steps.add(TileTransposeOp(steps.add(load))))


RULES: dict[type[Operation], Rule] = {LoadTileOp: _transposing}
