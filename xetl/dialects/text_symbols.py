"""Names of a text: each once in its module, and calls of what is there."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from .upstream import func, gpu
from .verify import LocatedVerifyException

Table = dict[str, Operation]


def check_symbols(module: ModuleOp) -> None:
    """Check the names of a module and of those inside.

    Raises:
        LocatedVerifyException: a name is given twice, or a call does not fit.
    """
    tables = [op for op in module.walk() if isinstance(op, ModuleOp | gpu.ModuleOp)]
    for holder in tables:
        table = _table(holder)
        for function in table.values():
            if isinstance(function, ModuleOp | gpu.ModuleOp):
                continue  # what is called there is looked for there
            for op in function.walk():
                if isinstance(op, func.CallOp):
                    _check_call(op, table)


def _table(holder: Operation) -> Table:
    found: Table = {}
    for block in holder.regions[0].blocks:
        for op in block.ops:
            name = op.properties.get("sym_name") or op.attributes.get("sym_name")
            if not isinstance(name, StringAttr):
                continue
            if name.data in found:
                problem = f"there are two functions called `{name.data}`"
                raise LocatedVerifyException(op, problem)
            found[name.data] = op
    return found


def _check_call(call: func.CallOp, table: Table) -> None:
    name = call.callee.root_reference.data
    callee = table.get(name)
    if not isinstance(callee, func.FuncOp | gpu.FuncOp):
        raise LocatedVerifyException(call, f"there is no function `{name}` here")
    type_ = callee.function_type
    given = [[a.type for a in call.arguments], list(call.result_types)]
    if given != [list(type_.inputs.data), list(type_.outputs.data)]:
        raise LocatedVerifyException(call, f"`{name}` has the type {type_}")
