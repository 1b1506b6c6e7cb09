"""Fences of `xegpu`, which XeTile modules from text may contain beside atomics.

A fence says which memory it orders, and who sees it.  Source: MLIR 22, `xegpu` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, cast

from typing_extensions import Unpack
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    param_def,
    prop_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from ..base import check, parse_attributes, print_attributes
from ..operation import Common, XetlOp


class WordAttr(ParametrizedAttribute):
    """One word of a list; each class has its parameter, else all words are equal."""

    WORDS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, word: str) -> None:
        super().__init__(StringAttr(word))

    @property
    def word(self) -> str:
        """One of WORDS."""
        return cast(StringAttr, self.parameters[0]).data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse the word."""
        return cls.parse_word(parser).parameters

    @classmethod
    def parse_word(cls, parser: AttrParser) -> Self:
        """The attribute of a word that stands alone."""
        position = parser.pos
        word = parser.parse_identifier()
        if word not in cls.WORDS:
            known = ", ".join(cls.WORDS)
            parser.raise_error(f"`{word}` is not one of {known}", position)
        return cls(word)

    def print_parameters(self, printer: Printer) -> None:
        """Print the word."""
        printer.print_string(self.word)

    def verify(self) -> None:
        """Check that there is such a word."""
        known = ", ".join(self.WORDS)
        check(self.word in self.WORDS, f"`{self.word}` is not one of {known}")


@irdl_attr_definition
class MemorySpaceAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    """``#xegpu<memory_space slm>``: global memory, or that of a workgroup."""

    name = "xegpu.memory_space"
    WORDS: ClassVar[tuple[str, ...]] = ("global", "slm")

    text: StringAttr = param_def()

    def __init__(self, word: str) -> None:
        super().__init__(word)


@irdl_attr_definition
class FenceScopeAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    """``#xegpu<fence_scope gpu>``: who sees what was written before a fence."""

    name = "xegpu.fence_scope"
    WORDS: ClassVar[tuple[str, ...]] = ("workgroup", "gpu")

    text: StringAttr = param_def()

    def __init__(self, word: str) -> None:
        super().__init__(word)


@irdl_op_definition
class FenceOp(XetlOp):
    """What was written before is seen before what is written after."""

    name = "xegpu.fence"

    memory_kind = prop_def(MemorySpaceAttr)
    fence_scope = prop_def(FenceScopeAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self, memory_kind: str, fence_scope: str, **common: Unpack[Common]
    ) -> None:
        super().__init__(
            properties={
                "memory_kind": MemorySpaceAttr(memory_kind),
                "fence_scope": FenceScopeAttr(fence_scope),
            },
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``memory_kind = slm, fence_scope = workgroup``."""
        parser.parse_keyword("memory_kind")
        parser.parse_punctuation("=")
        kind = MemorySpaceAttr.parse_word(parser)
        parser.parse_punctuation(",")
        parser.parse_keyword("fence_scope")
        parser.parse_punctuation("=")
        scope = FenceScopeAttr.parse_word(parser)
        _, attributes = parse_attributes(parser, cls)
        return cls(kind.word, scope.word, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``memory_kind = slm, fence_scope = workgroup``."""
        printer.print_string(f" memory_kind = {self.memory_kind.word}")
        printer.print_string(f", fence_scope = {self.fence_scope.word}")
        print_attributes(printer, self, ("memory_kind", "fence_scope"))
