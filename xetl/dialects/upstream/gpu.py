"""Kernels, and their position in the grid.  Source: MLIR, `gpu` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Dialect, Region, SpacedOpaqueSyntaxAttribute
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from ..attributes import WordAttr
from ..base import check, write
from ..operation import Common, PureOp, XetlOp, operations_of, row
from ..traits import READS_AND_WRITES
from . import func as syntax
from .func import GivingOp, check_returns

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

KERNEL = "gpu.kernel"
WORKGROUP = "workgroup_attributions"
HIDDEN = ("sym_name", "function_type", "arg_attrs", "res_attrs", KERNEL, WORKGROUP)


class ModuleOp(
    XetlOp,
    name="gpu.module",
    traits=[IsolatedFromAbove(), NoTerminator(), SymbolOpInterface(), SymbolTable()],
):
    """Code for one device."""

    sym_name = irdl.prop_def(builtin.SymbolNameConstraint())
    targets = irdl.opt_prop_def(builtin.ArrayAttr)
    body = irdl.region_def("single_block")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``@name [targets] attributes {...} {...}``."""
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        targets = parser.parse_optional_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_attribute
        )
        if targets is not None:
            properties["targets"] = builtin.ArrayAttr(targets)
        attributes = syntax.parse_keyword_attributes(parser)
        body = parser.parse_region([])
        return cls.create(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.targets is not None:
            write(printer, " ", self.targets)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)


class FuncOp(
    XetlOp, name="gpu.func", traits=[IsolatedFromAbove(), SymbolOpInterface()]
):
    """A function of a device; the attribute `gpu.kernel` marks a kernel.

    Block arguments beyond those of the function's type are memory: the first
    `workgroup_attributions` of them belong to the workgroup, the others to the work
    item.
    """

    sym_name = irdl.prop_def(builtin.SymbolNameConstraint())
    function_type = irdl.prop_def(builtin.FunctionType)
    arg_attrs = res_attrs = irdl.opt_prop_def(builtin.ArrayAttr)
    workgroup_attributions = irdl.opt_prop_def(builtin.IntegerAttr)
    known_block_size = known_grid_size = irdl.opt_prop_def(builtin.DenseArrayBase)
    body = irdl.region_def()

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
        type_ = builtin.FunctionType.from_lists(inputs, result_types)
        super().__init__(body, sym_name=name, function_type=type_, **common)
        if kernel:
            self.attributes[KERNEL] = builtin.UnitAttr()

    @property
    def is_kernel(self) -> bool:
        """Whether the host launches the function."""
        return KERNEL in self.attributes

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``@name(%a: type) kernel attributes {...} {...}``."""
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        arguments, of_signature = syntax.parse_signature(parser)
        count = len(arguments)

        def parse_memory() -> None:
            """Parse ``%memory : type {...}``; the attributes are dropped."""
            arguments.append(parser.parse_argument())
            parser.parse_optional_attr_dict()

        for keyword in ("workgroup", "private"):
            if parser.parse_optional_keyword(keyword):
                paren = parser.Delimiter.PAREN
                parser.parse_comma_separated_list(paren, parse_memory)
            shared = len(arguments) - count
            if keyword == "workgroup" and shared:
                properties[WORKGROUP] = builtin.IntegerAttr(shared, builtin.i64)
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("kernel"):
            attributes[KERNEL] = builtin.UnitAttr()
        found = syntax.parse_keyword_attributes(parser)
        known = ("known_block_size", "known_grid_size")
        properties |= {k: v for k, v in found.items() if k in known}
        attributes |= {k: v for k, v in found.items() if k not in known}
        return cls.create(
            properties=properties | of_signature,
            attributes=attributes,
            regions=[parser.parse_optional_region(arguments) or Region()],
        )

    def print(self, printer: Printer) -> None:
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
        syntax.print_attributes_and_body(printer, self, HIDDEN, self.body)

    def verify_(self) -> None:
        check(bool(self.body.blocks), "gpu.func needs a body")
        expected = list(self.function_type.inputs.data)
        found = [argument.type for argument in self.body.blocks[0].args]
        if found[: len(expected)] != expected:
            raise VerifyException(f"the body takes {found}, expected {expected}")
        check_returns(self.body, self.function_type)
        if self.is_kernel and self.function_type.outputs.data:
            raise VerifyException("a kernel has no results")


ReturnOp = row(GivingOp, "gpu.return", "Return from a device function.")


class BarrierOp(XetlOp, name="gpu.barrier", traits=READS_AND_WRITES):
    """Wait for all work items of the workgroup; each then sees the others' writes."""

    assembly_format = "attr-dict"


@irdl.irdl_attr_definition(init=False)
class DimensionAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    """``#gpu<dim x>``."""

    name = "gpu.dim"
    WORDS: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    PROBLEM: ClassVar[str] = "a dimension is x, y or z, found {word}"


class DimensionOp(PureOp):
    """``op x``: a number or a size of the grid or workgroup along one dimension."""

    dimension = irdl.prop_def(DimensionAttr)
    upper_bound = irdl.opt_prop_def(builtin.IntegerAttr[builtin.IndexType])
    result = irdl.result_def(builtin.IndexType)

    assembly_format = "$dimension (`upper_bound` $upper_bound^)? attr-dict"

    @property
    def axis(self) -> int:
        """The dimension as a number, x being 0."""
        return "xyz".index(self.dimension.word)


BlockIdOp = row(DimensionOp, "gpu.block_id", "The number of this program in the grid.")
GridDimOp = row(DimensionOp, "gpu.grid_dim", "The number of programs of the grid.")
ThreadIdOp = row(
    DimensionOp,
    "gpu.thread_id",
    "The number of this work item in its workgroup (XeTile text: of this subgroup).",
)
BlockDimOp = row(
    DimensionOp,
    "gpu.block_dim",
    "The number of work items of a workgroup (XeTile text: of subgroups).",
)
GlobalIdOp = row(
    DimensionOp, "gpu.global_id", "The number of this work item in the whole grid."
)


class SubgroupNumberOp(PureOp):
    """``op : index``: a number or a size of the subgroup."""

    upper_bound = irdl.opt_prop_def(builtin.IntegerAttr)
    result = irdl.result_def(builtin.IndexType)

    assembly_format = "(`upper_bound` $upper_bound^)? attr-dict `:` type($result)"


SubgroupIdOp = row(
    SubgroupNumberOp, "gpu.subgroup_id", "The number of this subgroup in its workgroup."
)
NumSubgroupsOp = row(
    SubgroupNumberOp, "gpu.num_subgroups", "The number of subgroups of the workgroup."
)
SubgroupSizeOp = row(
    SubgroupNumberOp, "gpu.subgroup_size", "The number of work items of a subgroup."
)


class LaneIdOp(SubgroupNumberOp, name="gpu.lane_id"):
    """The number of this work item in its subgroup."""

    assembly_format = "(`upper_bound` $upper_bound^)? attr-dict"


Gpu = Dialect("gpu", operations_of(__name__), [DimensionAttr])
