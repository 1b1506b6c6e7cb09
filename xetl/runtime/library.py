"""``xetl.load_mlir``: the kernels of a text by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xetl.dialects.text import error_at, functions_of, read_module
from xetl.errors import IRError, MissingKernelError, XetlError, did_you_mean
from xetl.runtime.caller import at_caller
from xetl.runtime.text_kernel import TextKernel


class Library(Mapping[str, TextKernel]):
    """The functions of a text by name; ``str()`` is the text in canonical form."""

    def __init__(self, text: str) -> None:
        """Parse and verify ``text``.

        Raises:
            IRError: it is wrong.
        """
        self._module = read_module(text)
        functions = functions_of(self._module)
        self._kernels: dict[str, TextKernel] = {}
        for function in functions:
            name = function.sym_name.data
            if name in self._kernels:
                message = f"there are two functions called `{name}`"
                raise error_at(text, function, message, "X0702")
            self._kernels[name] = TextKernel(text, function, functions)

    def __getitem__(self, name: str) -> TextKernel:
        """The function called ``name``.

        Raises:
            MissingKernelError: there is none.
        """
        found = self._kernels.get(name)
        if found is None:
            listed = ", ".join(f"`{each}`" for each in self._kernels) or "none"
            error = MissingKernelError(
                f"the text has no kernel called `{name}`",
                code="X0818",
                help=did_you_mean(str(name), self._kernels)
                or f"its kernels are {listed}",
            )
            raise at_caller(error) from None
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"<xetl library of {', '.join(self._kernels)}>"

    def __str__(self) -> str:
        return str(self._module)


def load_mlir(text: str) -> Library:
    """The kernels of a module of XeTile IR.

    Args:
        text: ``gpu.module``, ``gpu.func`` or ``func.func``, or a module around them.

    Raises:
        IRError: the text is wrong; the error has the line and column.
    """
    try:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(text).__name__
            raise IRError(f"a text was expected, found a {kind}", code="X0701")
        return Library(text)
    except XetlError as error:
        raise at_caller(error) from None
