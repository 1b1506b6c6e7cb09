"""Emission of where a lane is, and of the end."""

from __future__ import annotations

from typing import Any

from xetl.codegen.emitter import Emit
from xetl.codegen.types import I32
from xetl_xegpu import simt
from xetl_xegpu.emit import ending
from xetl_xegpu.emit.builtins import function
from xetl_xegpu.emit.emitter import KernelEmitter, Table


def _of_dimension(name: str) -> Emit:
    def emit(em: Any, op: Any) -> None:
        builtin = function(name, "ulong", "uint")
        em.set(op.result, em.call(builtin, [I32(op.axis)]))

    return emit


def _subgroup_id(em: KernelEmitter, op: simt.SubgroupIdOp) -> None:
    em.set(op.result, em.call(function("get_sub_group_id", "uint"), []))


def _lane_id(em: KernelEmitter, op: simt.LaneIdOp) -> None:
    em.set(op.result, em.lane())


def _return(em: KernelEmitter, op: simt.ReturnOp) -> None:
    ending.end(em)


TABLE: Table = {
    simt.GroupIdOp: _of_dimension("get_group_id"),
    simt.NumGroupsOp: _of_dimension("get_num_groups"),
    simt.SubgroupIdOp: _subgroup_id,
    simt.LaneIdOp: _lane_id,
    simt.ReturnOp: _return,
}
