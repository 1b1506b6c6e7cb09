"""The base of our passes: a class that rewrites a module, named as the pass."""

from __future__ import annotations

import re
from abc import abstractmethod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


class Pass(ModulePass):
    """A pass; ``FoldAddIntoMmaPass`` is called ``fold-add-into-mma``."""

    def __init_subclass__(cls) -> None:
        """Name the pass as its class."""
        words = cls.__name__.removesuffix("Pass")
        cls.name = re.sub("(?<=[a-z])(?=[A-Z])", "-", words).lower()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place, as xDSL asks for it: no pass of ours needs more."""
        self.rewrite(op)

    @abstractmethod
    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
