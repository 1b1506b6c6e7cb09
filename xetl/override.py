"""Replaces the module at a stage by a text: ``XETL_OVERRIDE=after:<stage>=FILE``.

The text is what `kernel.ir` or XETL_DUMP printed, changed by hand. It takes the place
of the module of the kernel it is about; all other kernels are compiled as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import ParseError, VerifyException

from xetl.backend import BackendBase
from xetl.dialects.parser import XetlParser, make_context
from xetl.dialects.text import parse_error
from xetl.errors import IRError, LaunchError, did_you_mean
from xetl.settings import config

_NAME = "sym_name"


class Override:
    """A text in place of what a pass leaves."""

    def __init__(self, name: str, file: Path, backend: BackendBase) -> None:
        """Read and check the text.

        Raises:
            LaunchError: there is no such file.
            IRError: the text is wrong.
        """
        self._name = name
        text = _read(file)
        parser: XetlParser | None = None
        try:
            parser = XetlParser(make_context(backend.opt_dialects()), text, str(file))
            module = parser.parse_module()
            module.verify()
        except (ParseError, VerifyException) as error:
            found = (
                parse_error(text, parser, error)
                if isinstance(error, ParseError)
                else IRError(f"the text is wrong: {error}", code="X0702")
            )
            found.file = str(file)
            raise found from None
        self._module = module

    def replace(self, name: str, stage: str | None, module: ModuleOp) -> None:
        """Put the text in place of ``module``, if it is its turn and of its kernel."""
        if self._name not in (name, stage) or self._module is None:
            return
        if not _names(module) & _names(self._module):
            return
        new, self._module = self._module, None
        for op in list(module.body.block.ops):
            module.body.block.erase_op(op, safe_erase=False)
        for op in list(new.body.block.ops):
            op.detach()
            module.body.block.add_op(op)
        module.attributes = dict(new.attributes)


def override_for(backend: BackendBase, known: Sequence[str]) -> Override | None:
    """The override that is asked for, if any; ``known`` are the stages and passes.

    Raises:
        LaunchError: there is no such stage or file.
        IRError: the text is wrong.
    """
    asked = config.override
    if asked is None:
        return None
    name, file = asked
    if name not in known:
        raise LaunchError(
            f"XETL_OVERRIDE: backend `{backend.name}` has no stage or pass `{name}`",
            code="X0812",
            notes=[f"there are {', '.join(known)}"],
            help=did_you_mean(name, known),
        )
    return Override(name, file, backend)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        problem = f"XETL_OVERRIDE: `{file}` cannot be read: {error.strerror}"
        help_ = "name a file that `xetl ir ... --stage ... -o FILE` wrote"
        raise LaunchError(problem, "X0814", help_) from None


def _names(module: ModuleOp) -> set[str]:
    """Of functions, and of modules around them."""
    found: set[str] = set()
    for op in module.walk():
        name = op.properties.get(_NAME) or op.attributes.get(_NAME)
        if isinstance(name, StringAttr):
            found.add(name.data)
    return found
