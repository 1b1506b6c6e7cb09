"""Kernels and where in the grid they run.  Source: MLIR, `gpu` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Dialect, Region
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    SymbolOpInterface,
    SymbolTable,
)

from ..base import Value, check, print_attributes
from ..operation import Common, XetlOp
from . import function_syntax as syntax
from .func import check_returns
from .gpu_index import (
    BlockDimOp,
    BlockIdOp,
    DimensionAttr,
    GlobalIdOp,
    GridDimOp,
    LaneIdOp,
    NumSubgroupsOp,
    SubgroupIdOp,
    SubgroupSizeOp,
    ThreadIdOp,
)

KERNEL = "gpu.kernel"
WORKGROUP = "workgroup_attributions"
HIDDEN = ("sym_name", "function_type", "arg_attrs", "res_attrs", KERNEL, WORKGROUP)


@irdl_op_definition
class ModuleOp(XetlOp):
    """Code for one device."""

    name = "gpu.module"

    sym_name = prop_def(SymbolNameConstraint())
    targets = opt_prop_def(ArrayAttr)
    body = region_def("single_block")

    traits = traits_def(
        IsolatedFromAbove(), NoTerminator(), SymbolOpInterface(), SymbolTable()
    )

    def __init__(
        self, name: str, body: Region | None = None, **common: Unpack[Common]
    ) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name)},
            regions=[body or Region()],
            **common,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``@name [targets] attributes {...} {...}``."""
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        targets = parser.parse_optional_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_attribute
        )
        if targets is not None:
            properties["targets"] = ArrayAttr(targets)
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("attributes"):
            attributes = parser.parse_optional_attr_dict()
        body = parser.parse_region([])
        return cls.create(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        """Print ``@name [targets] attributes {...} {...}``."""
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.targets is not None:
            printer.print_string(" ")
            printer.print_attribute(self.targets)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class FuncOp(XetlOp):
    """A function of a device; with the attribute `gpu.kernel` one that is launched.

    Block arguments beyond the function's type are memory of the workgroup (the
    first `workgroup_attributions` of them) and of the work item.
    """

    name = "gpu.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    arg_attrs = opt_prop_def(ArrayAttr)
    res_attrs = opt_prop_def(ArrayAttr)
    workgroup_attributions = opt_prop_def(IntegerAttr)
    known_block_size = opt_prop_def(DenseArrayBase)
    known_grid_size = opt_prop_def(DenseArrayBase)
    body = region_def()

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        body: Region,
        *,
        kernel: bool = True,
        result_types: Sequence[Attribute] = (),
        **common: Unpack[Common],
    ) -> None:
        inputs = [argument.type for argument in body.blocks[0].args]
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(inputs, result_types),
            },
            regions=[body],
            **common,
        )
        if kernel:
            self.attributes[KERNEL] = UnitAttr()

    @property
    def is_kernel(self) -> bool:
        """Whether the host launches it."""
        return KERNEL in self.attributes

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``@name(%a: type) kernel attributes {...} {...}``."""
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        signature = syntax.parse_signature(parser)
        properties["function_type"] = signature.function_type
        memory: list[Parser.Argument] = []
        for keyword in ("workgroup", "private"):
            if parser.parse_optional_keyword(keyword):
                memory += parser.parse_comma_separated_list(
                    parser.Delimiter.PAREN, lambda: syntax.parse_attribution(parser)
                )
            if keyword == "workgroup" and memory:
                properties[WORKGROUP] = IntegerAttr(len(memory), i64)
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("kernel"):
            attributes[KERNEL] = UnitAttr()
        if parser.parse_optional_keyword("attributes"):
            found = parser.parse_optional_attr_dict()
            known = ("known_block_size", "known_grid_size")
            properties |= {k: v for k, v in found.items() if k in known}
            attributes |= {k: v for k, v in found.items() if k not in known}
        body = syntax.parse_body(parser, [*signature.arguments, *memory])
        return cls.create(
            properties=properties | signature.attribute_properties(),
            attributes=attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        """Print ``@name(%a: type) kernel attributes {...} {...}``."""
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        arguments = self.body.blocks[0].args
        count = len(self.function_type.inputs.data)
        syntax.print_arguments(printer, arguments[:count], self.arg_attrs)
        syntax.print_results(printer, self.function_type.outputs.data, self.res_attrs)
        shared = self.workgroup_attributions
        split = count + (0 if shared is None else shared.value.data)
        for keyword, part in (
            ("workgroup", arguments[count:split]),
            ("private", arguments[split:]),
        ):
            if part:
                printer.print_string(f" {keyword}")
                syntax.print_arguments(printer, part, None)
        if self.is_kernel:
            printer.print_string(" kernel")
        printer.print_op_attributes(
            self.properties | self.attributes,
            reserved_attr_names=HIDDEN,
            print_keyword=True,
        )
        printer.print_string(" ")
        printer.print_region(self.body, False, False)

    def verify_(self) -> None:
        """Check that the body takes what the type says, and kernels give nothing."""
        check(bool(self.body.blocks), "gpu.func needs a body")
        expected = list(self.function_type.inputs.data)
        found = [argument.type for argument in self.body.blocks[0].args]
        check(
            found[: len(expected)] == expected,
            f"the body takes {found}, expected {expected}",
        )
        check_returns(self.body, self.function_type)
        check(
            not (self.is_kernel and self.function_type.outputs.data),
            "a kernel has no results",
        )


@irdl_op_definition
class ReturnOp(XetlOp):
    """Leave a device function."""

    name = "gpu.return"

    arguments = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *arguments: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[arguments], **common)


@irdl_op_definition
class BarrierOp(XetlOp):
    """All work items of the workgroup meet; what they wrote is seen by all."""

    name = "gpu.barrier"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, **common: Unpack[Common]) -> None:
        super().__init__(**common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse an attribute dictionary."""
        return cls.create(attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        """Print the attribute dictionary."""
        print_attributes(printer, self)


Gpu = Dialect(
    "gpu",
    [
        ModuleOp,
        FuncOp,
        ReturnOp,
        BarrierOp,
        BlockIdOp,
        BlockDimOp,
        GridDimOp,
        GlobalIdOp,
        ThreadIdOp,
        LaneIdOp,
        NumSubgroupsOp,
        SubgroupIdOp,
        SubgroupSizeOp,
    ],
    [DimensionAttr],
)

__all__ = [
    "BarrierOp",
    "BlockDimOp",
    "BlockIdOp",
    "DimensionAttr",
    "FuncOp",
    "GlobalIdOp",
    "Gpu",
    "GridDimOp",
    "LaneIdOp",
    "ModuleOp",
    "NumSubgroupsOp",
    "ReturnOp",
    "SubgroupIdOp",
    "SubgroupSizeOp",
    "ThreadIdOp",
]
