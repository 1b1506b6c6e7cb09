"""Decorators that make a Python function an operation or a helper of kernels."""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar, cast

from xetl.errors import LaunchError
from xetl.imports import late
from xetl.language.source_lines import keep_lines

P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:
    constexpr = Any
    """Annotates a parameter whose value is known when the kernel is compiled."""
else:

    class constexpr:  # noqa: N801  (the name users write; Triton's)
        """Annotates a parameter whose value is known when the kernel is compiled."""

        def __class_getitem__(cls, item: object) -> type[constexpr]:
            """Return the class: ``constexpr[int]`` only tells a reader the type."""
            return cls


_reduced = late("xetl.language.pickling", "reduced")
_NAME = "__xetl_operation__"
_BODY = "__xetl_body__"


def operation(declaration: Callable[P, R]) -> Callable[P, R]:
    """Turn a declaration into an operation, which the front end implements.

    A call on the host raises a LaunchError.
    """

    @functools.wraps(declaration)
    def on_host(*args: P.args, **kwargs: P.kwargs) -> R:
        refuse_host_call(declaration.__name__)

    setattr(on_host, _NAME, declaration.__name__)
    return on_host


def composite(definition: Callable[P, R]) -> Callable[P, R]:
    """Turn a function of other operations into an operation: calls are inlined.

    Its body may use all that a kernel may use. Errors and remarks name the user's call.
    """
    on_host = operation(definition)
    setattr(on_host, _BODY, definition)
    return on_host


def body_of(value: object) -> Callable[..., Any] | None:
    """Return the function of a `composite` operation. Return None for other values."""
    return getattr(value, _BODY, None)


def host_operation(definition: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that means the same on the host and in a kernel."""
    setattr(definition, _NAME, definition.__name__)
    return definition


def operation_name(value: object) -> str | None:
    """Return the name of an operation. Return None for other values."""
    name: object = getattr(value, _NAME, None)
    return name if isinstance(name, str) else None


class Function(Generic[P, R]):
    """A helper marked ``@xetile.function``, ``fn``: inlined where a kernel calls it."""

    def __init__(self, fn: Callable[P, R]) -> None:
        self.fn = fn
        if hasattr(fn, "__code__"):
            keep_lines(fn)
        functools.update_wrapper(cast("Callable[P, R]", self), fn)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Refuse a call on the host: a helper can only be called in a kernel.

        Raises:
            LaunchError: always.
        """
        refuse_host_call(self.fn.__name__)

    def __repr__(self) -> str:
        return f"<xetile.function {self.fn.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _reduced(self, (self.fn,), self.fn)

    def __setstate__(self, made: tuple[Any, ...]) -> None:
        type(self).__init__(self, *made)


def function(fn: Callable[P, R]) -> Function[P, R]:
    """Mark a helper of kernels, which may be a nested function or a lambda."""
    return Function(fn)


def refuse_host_call(name: str) -> NoReturn:
    """Refuse a call made on the host, at the line that made it.

    Raises:
        LaunchError: always.
    """
    # Two frames up: above this function and the operation.
    caller = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    file, line = caller.f_code.co_filename, caller.f_lineno
    source = linecache.getline(file, line)
    column = len(source) - len(source.lstrip()) + 1
    error = LaunchError(
        f"`{name}` was called on the host, but belongs in a kernel",
        code="X0801",
        file=file,
        line=line,
        column=column,
        length=len(source.strip()),
        source_line=source or None,
        function=caller.f_code.co_name,
        help="call it inside a function decorated with `@xetile.kernel` or"
        " `@xetile.function`",
    )
    end = TracebackType(None, caller, caller.f_lasti, line)
    raise error.with_traceback(end) from None
