"""What of a text a workgroup cannot do, as an error with its line."""

from __future__ import annotations

from xdsl.ir import Operation

from xetl.dialects.upstream import func, gpu
from xetl.errors import CompileError, XetlError
from xetl.transforms.faults import Kind, Reporter

_CANNOT = Kind(CompileError, "X0705", "X0705")


def refusal(op: Operation, message: str, help: str) -> XetlError:
    """The error that an operation cannot be distributed.

    Args:
        op: the operation.
        message: what is wrong with it.
        help: what to write instead.
    """
    kernel: Operation = op
    while not isinstance(kernel, gpu.FuncOp | func.FuncOp):
        above = kernel.parent_op()
        if above is None:
            break
        kernel = above
    return Reporter(kernel).error(_CANNOT, op, message, help=help)
