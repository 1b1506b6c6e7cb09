"""Kernels; where a lane is; shuffles, barriers and records for the host.

Operations of subgroups and barriers need all lanes of a subgroup; a barrier of the
workgroup needs all its subgroups.  A record goes to the status words that a kernel gets
as its last argument (`xetl_xegpu.emit.log`).  Its values are numbers, the same in every
lane, or matrices as docs/design/0005-xegpu.md spreads them over the lanes: as their
fragments, row of fragments by row of fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from xetl.dialects.base import check, dense_i64, element_type, ints_of
from xetl.dialects.kernel_attributes import LANES as SUBGROUP_SIZE
from xetl.dialects.operation import XetlOp
from xetl.dialects.reduction_kinds import KINDS, kind_fits
from xetl.dialects.traits import READS_AND_WRITES
from xetl.dialects.type_rules import like
from xetl.dialects.upstream import func as syntax
from xetl.dialects.xetile.debug_ops import count_fields
from xetl_xegpu.simt.memory_ops import SPACES

DIMENSIONS = ("x", "y", "z")

SPILLS = "xegpu.spills"
"""Of a kernel: it needs more registers than there are."""

WALK = "xegpu.walk"
"""Of a kernel: so many programs along x take the same y one after the other."""


class FuncOp(
    XetlOp, name="simt.func", traits=[IsolatedFromAbove(), SymbolOpInterface()]
):
    """A kernel as one lane runs it; its body is one block.

    Attributes:
        work_group: lanes of a workgroup along x, y and z; subgroups lie along x.
        subgroup_size: 16.
        slm_bytes: shared local memory of a workgroup, in bytes.
    """

    sym_name = irdl.prop_def(builtin.SymbolNameConstraint())
    work_group = irdl.prop_def(builtin.DenseArrayBase)
    subgroup_size = slm_bytes = irdl.prop_def(builtin.IntegerAttr[builtin.I64])
    body = irdl.region_def("single_block")

    @property
    def lanes(self) -> tuple[int, ...]:
        """Lanes of a workgroup along x, y and z."""
        return ints_of(self.work_group)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``@name(%a: i64) attributes {...} {...}``."""
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        signature = syntax.parse_signature(parser)
        attributes = syntax.parse_keyword_attributes(parser)
        known = cls.get_irdl_definition().properties
        for name in [name for name in attributes if name in known]:
            properties[name] = attributes.pop(name)
        body = syntax.parse_body(parser, signature.arguments)
        return cls.create(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        syntax.print_arguments(printer, self.body.block.args, None)
        shown = {k: v for k, v in self.properties.items() if k != "sym_name"}
        printer.print_op_attributes(shown | self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        lanes, size = self.lanes, self.subgroup_size.value.data
        check(size == SUBGROUP_SIZE, "a subgroup has 16 lanes, found {}", size)
        fits = len(lanes) == len(DIMENSIONS) and min(lanes) > 0
        check(fits, "`work_group` has three sizes, found {}", lanes)
        fits = lanes[0] % size == 0 and lanes[1:] == (1, 1)
        check(fits, "a workgroup is whole subgroups along x, found {}", lanes)
        check(self.slm_bytes.value.data >= 0, "`slm_bytes` is negative")
        last = self.body.block.last_op
        check(isinstance(last, ReturnOp), "a kernel ends with `simt.return`")


class ReturnOp(XetlOp, name="simt.return", traits=[IsTerminator(), Pure()]):
    """The end of a kernel."""

    assembly_format = "attr-dict"


class _DimensionOp(XetlOp, traits=[Pure()]):
    """``op x``: a number of the grid along a dimension, i64."""

    dimension = irdl.prop_def(builtin.StringAttr)
    result = irdl.result_def(builtin.I64)
    assembly_format = "custom<Word>($dimension) attr-dict"

    @property
    def axis(self) -> int:
        """0 for x, 1 for y, 2 for z."""
        return DIMENSIONS.index(self.dimension.data)

    def verify_(self) -> None:
        found = self.dimension.data
        check(found in DIMENSIONS, "a dimension is x, y or z, found {}", found)


class GroupIdOp(_DimensionOp, name="simt.group_id"):
    """Which workgroup of the grid this is."""


class NumGroupsOp(_DimensionOp, name="simt.num_groups"):
    """How many workgroups the grid has."""


class _IdOp(XetlOp, traits=[Pure()]):
    """A number of this lane, i32."""

    result = irdl.result_def(builtin.I32)
    assembly_format = "attr-dict"


class SubgroupIdOp(_IdOp, name="simt.subgroup_id"):
    """Which subgroup of the workgroup this is; the same in all its lanes."""


class LaneIdOp(_IdOp, name="simt.lane_id"):
    """Which lane of the subgroup this is."""


# Subgroups ----------------------------------------------------------------------------


class ShuffleOp(XetlOp, name="simt.shuffle", traits=[Pure()]):
    """``value`` as the lane ``lane`` has it; each lane may ask for another one.

    ``lane`` modulo 16 counts.
    """

    value = irdl.operand_def()
    lane = irdl.operand_def(builtin.I32)
    result = irdl.result_def(like("value"))
    assembly_format = "$value `,` $lane attr-dict `:` type($value)"


class ReduceOp(XetlOp, name="simt.reduce", traits=[Pure()]):
    """The values of all 16 lanes combined; the same in every lane.

    f16 and bf16 are summed in f32, rounded once.
    """

    value = irdl.operand_def()
    kind = irdl.prop_def(builtin.StringAttr)
    result = irdl.result_def(like("value"))
    assembly_format = "$kind $value attr-dict `:` type($value)"

    def verify_(self) -> None:
        kind, element = self.kind.data, element_type(self.value.type)
        check(kind in KINDS, "`{}` is no kind, one of {}", kind, KINDS)
        check(kind_fits(kind, element), "`{}` does not combine {}", kind, element)


# Barriers -----------------------------------------------------------------------------


SCOPES = ("workgroup", "device", "system")
"""Who sees what was written."""


class _OrderingOp(XetlOp, traits=READS_AND_WRITES):
    """No access may move over it."""


class _PlainOp(_OrderingOp):
    """One that says all by its name."""

    assembly_format = "attr-dict"


class BarrierOp(_PlainOp, name="simt.barrier"):
    """All lanes of the workgroup meet; what they wrote before is seen by all after."""


class BarrierArriveOp(_PlainOp, name="simt.barrier_arrive"):
    """The first half of a barrier: what this subgroup wrote before may be read.

    `BarrierWaitOp` follows in the same block, with no other arrival between: a
    subgroup has arrived once or not at all.
    """


class BarrierWaitOp(_PlainOp, name="simt.barrier_wait"):
    """The second half: all subgroups have arrived, and what they wrote is seen."""


class NamedBarrierOp(_OrderingOp, name="simt.named_barrier"):
    """Some subgroups of the workgroup meet: those that come to this number.

    Attributes:
        number: which barrier.
        subgroups: how many meet there each time; the same wherever ``number`` is.
    """

    number = subgroups = irdl.prop_def(builtin.IntegerAttr[builtin.I64])
    assembly_format = "$number `of` $subgroups attr-dict"

    def verify_(self) -> None:
        count = self.subgroups.value.data
        check(count > 0, "{} subgroups do not meet", count)


class FenceOp(_OrderingOp, name="simt.fence"):
    """What this lane wrote before is seen by others before what it writes after.

    ``scope``: by those of the ``workgroup``, of the ``device`` or of the whole
    ``system``; ``memory``: what was written to ``global`` or to ``local`` memory, to
    both if it is absent.
    """

    scope = irdl.prop_def(builtin.StringAttr)
    memory = irdl.opt_prop_def(builtin.StringAttr)
    assembly_format = "$scope attr-dict"

    @property
    def spaces(self) -> tuple[str, ...]:
        """The memory it is about."""
        return SPACES if self.memory is None else (self.memory.data,)

    def verify_(self) -> None:
        scope = self.scope.data
        check(scope in SCOPES, "`scope` is one of {}, found {}", SCOPES, scope)
        for space in self.spaces:
            check(space in SPACES, "`memory` is one of {}, found {}", SPACES, space)


# Debugging ----------------------------------------------------------------------------


Shape = Sequence[int] | None
"""Of a printed value: None for a number, else one or two sizes."""


def _shapes(shapes: Sequence[Shape]) -> Attribute:
    return builtin.ArrayAttr([dense_i64(shape or ()) for shape in shapes])


class RecordOp(XetlOp, makers={"shapes": _shapes}, traits=READS_AND_WRITES):
    """What records have in common: a text, and values for its fields.

    Attributes:
        shapes: of each field: ``[]`` for a number, ``[n]`` or ``[rows, columns]``.
        unsigned: the fields whose integers have no sign.
    """

    template = irdl.prop_def(builtin.StringAttr)
    shapes = irdl.prop_def(builtin.ArrayAttr[builtin.DenseArrayBase])
    unsigned = irdl.opt_prop_def(builtin.DenseArrayBase)

    def field_shapes(self) -> list[tuple[int, ...]]:
        """The shape of each field; ``()`` for a number."""
        return [ints_of(shape) for shape in self.shapes.data]

    def verify_(self) -> None:
        shapes = self.field_shapes()
        wanted, found = count_fields(self.template.data), len(shapes)
        check(wanted == found, "{} has {} fields, not {}", self.template, wanted, found)
        for shape in shapes:
            fits = len(shape) <= 2 and all(size > 0 for size in shape)
            check(fits, "a value has one or two sizes, found {}", shape)


class PrintOp(RecordOp, name="simt.print"):
    """Print a line; one subgroup of a program does."""

    arguments = irdl.var_operand_def()
    assembly_format = "$template (`(` $arguments^ `:` type($arguments) `)`)? attr-dict"


class AssertOp(RecordOp, name="simt.assert"):
    """Unless ``condition``, the same in every lane, holds: a record and the end.

    The workgroup ends: the subgroup at once, or all of them at the next barrier.  The
    launch then fails with the text and the location of the operation.
    """

    condition = irdl.operand_def(builtin.I1)
    arguments = irdl.var_operand_def()
    assembly_format = (
        "$condition `,` $template (`(` $arguments^ `:` type($arguments) `)`)? attr-dict"
    )
