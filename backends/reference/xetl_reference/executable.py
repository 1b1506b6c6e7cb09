"""A kernel on arguments as the runtime gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute

from xetl.backend import Argument, ArrayView
from xetl.errors import InternalError
from xetl_reference.interpreter import Interpreter
from xetl_reference.memory import argument_view
from xetl_reference.stored import stored_arguments
from xetl_reference.values import as_scalar, dtype_of


class ReferenceExecutable:
    """See `xetl.backend.Executable`."""

    def __init__(self, module: ModuleOp) -> None:
        self._interpreter = Interpreter(module)
        self.stored = stored_arguments(self._interpreter.function)

    @property
    def fast(self) -> Callable[..., int] | None:
        """There is no shortcut."""
        return None

    def launch(self, grid: tuple[int, int, int], args: Sequence[Argument]) -> None:
        """Run the kernel on ``args`` (constants left out)."""
        types = self._interpreter.argument_types
        if len(types) != len(args):
            raise InternalError(
                f"a kernel of {len(types)} arguments was given {len(args)}"
            )
        values = [_value(arg, type_) for arg, type_ in zip(args, types)]
        self._interpreter.run(grid, values)


def _value(argument: Argument, type_: Attribute) -> Any:
    dtype = dtype_of(type_)
    if not isinstance(argument, ArrayView):
        return as_scalar(argument, dtype)
    if not isinstance(type_, MemRefType):
        raise InternalError(f"an array was given for {type_}")
    return argument_view(
        argument.address, dtype, argument.shape, argument.strides, argument.readonly
    )
