"""Emission of `cpu.thread_tiles`: each thread of a launch holds AMX tiles."""

from __future__ import annotations

from typing import Any

from xetl.codegen.emitter import Emitter, constant
from xetl_cpu.cpu_ops import ThreadTilesOp
from xetl_cpu.llvm import I8, I64, PTR, VOID, declare, stack_array
from xetl_cpu.microkernels.amx import emit_configure, emit_release
from xetl_cpu.xsmm.flags import DATA_TYPES

_INVOKE = "xsmm_intel_amx_tile_config_invoke"
_STATE_BYTES = 64


def set_up_tiles(em: Emitter, op: ThreadTilesOp) -> Any:
    """Before a thread's first trip; gives what `give_back_tiles` wants to know."""
    if op.library is None:
        emit_configure(em.builder)
        return None
    state = stack_array(em.builder, I8, _STATE_BYTES)
    state.align = _STATE_BYTES
    _invoke(em, em.get(op.setup), state)
    return state


def give_back_tiles(em: Emitter, op: ThreadTilesOp, state: Any) -> None:
    """Behind a thread's last trip."""
    if op.library is None:
        emit_release(em.builder)
    else:
        _invoke(em, em.get(op.reset), state)


def _invoke(em: Emitter, kernel: Any, state: Any) -> None:
    """A kernel of the library: it saves to the state, or restores from it."""
    function = declare(em.module, _INVOKE, VOID, [I64, I64, PTR, I64])
    data_type = constant(DATA_TYPES["bf16"])
    em.builder.call(function, [data_type, kernel, state, constant(0)])
