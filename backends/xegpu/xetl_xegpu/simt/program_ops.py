"""Kernels, ids of lanes and groups, shuffles, barriers, and records for the host.

All lanes of a subgroup must execute its operations and barriers; all subgroups of a
workgroup must execute its barriers. A record goes to the status words, the last
argument of a kernel (`xetl_xegpu.emit.log`). Its values are numbers that are the same
in every lane, or matrices: their fragments in row-major order, distributed over the
lanes as docs/design/0005-xegpu.md says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from xetl.dialects.base import Ints, check, dense_i64, element_type, ints_of, shape_of
from xetl.dialects.kernel_attributes import LANES as SUBGROUP_SIZE
from xetl.dialects.operation import XetlOp, row
from xetl.dialects.reduction_kinds import KINDS, kind_fits
from xetl.dialects.traits import READS_AND_WRITES
from xetl.dialects.type_rules import like
from xetl.dialects.upstream import func as syntax
from xetl.dialects.xetile.debug_ops import count_fields
from xetl_xegpu.simt.memory_ops import SPACES

DIMENSIONS = ("x", "y", "z")

SPILLS = "xegpu.spills"
"""Attribute of a kernel that needs more registers than there are."""

WALK = "xegpu.walk"
"""Attribute of a kernel: the number of programs along x that run before the next y."""


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

    lanes = Ints("work_group")
    """Lanes of a workgroup along x, y and z."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``@name(%a: i64) attributes {...} {...}``."""
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        arguments, _ = syntax.parse_signature(parser)
        attributes = syntax.parse_keyword_attributes(parser)
        known = cls.get_irdl_definition().properties
        for name in [name for name in attributes if name in known]:
            properties[name] = attributes.pop(name)
        body = parser.parse_optional_region(arguments) or Region()
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
    """``op x``: an id or a size of the grid along a dimension, i64."""

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


GroupIdOp = row(_DimensionOp, "simt.group_id", "Which workgroup of the grid this is.")
NumGroupsOp = row(_DimensionOp, "simt.num_groups", "How many workgroups the grid has.")


class _IdOp(XetlOp, traits=[Pure()]):
    """An id that depends on the lane, i32."""

    result = irdl.result_def(builtin.I32)
    assembly_format = "attr-dict"


SubgroupIdOp = row(
    _IdOp,
    "simt.subgroup_id",
    "Which subgroup of the workgroup this is; the same in all its lanes.",
)
LaneIdOp = row(_IdOp, "simt.lane_id", "Which lane of the subgroup this is.")


# Subgroups ----------------------------------------------------------------------------


class ShuffleOp(XetlOp, name="simt.shuffle", traits=[Pure()]):
    """Return the ``value`` of the lane ``lane`` modulo 16.

    ``lane`` may differ from lane to lane.
    """

    value = irdl.operand_def()
    lane = irdl.operand_def(builtin.I32)
    result = irdl.result_def(like("value"))
    assembly_format = "$value `,` $lane attr-dict `:` type($value)"


class ReductionOp(XetlOp, traits=[Pure()]):
    """Combine the values of all 16 lanes.

    f16 and bf16 are summed in f32 and rounded once.
    """

    value = irdl.operand_def()
    kind = irdl.prop_def(builtin.StringAttr)
    assembly_format = "$kind $value attr-dict `:` type($value)"

    def verify_(self) -> None:
        kind, element = self.kind.data, element_type(self.value.type)
        check(kind in KINDS, "`{}` is no kind, one of {}", kind, KINDS)
        check(kind_fits(kind, element), "`{}` does not combine {}", kind, element)


class ReduceOp(ReductionOp, name="simt.reduce"):
    """The result is the same in every lane."""

    result = irdl.result_def(like("value"))


KINDS_OF_ROWS = {"add": "add", "maxnumf": "max", "minnumf": "min"}
"""The kinds that combine rows, and the instruction of each."""


class ReduceRowsOp(ReductionOp, name="simt.reduce_rows"):
    """Lane l has the result of row l modulo 8, of eight rows of f32."""

    result = irdl.result_def(builtin.Float32Type)

    def verify_(self) -> None:
        super().verify_()
        type_ = self.value.type
        check(shape_of(type_) == (8,), "it combines vector<8xf32>, found {}", type_)


# Barriers -----------------------------------------------------------------------------


SCOPES = ("workgroup", "device", "system")
"""Who must see the writes before a fence."""


class _OrderingOp(XetlOp, traits=READS_AND_WRITES):
    """Base class of operations that no memory access may move over."""


class _PlainOp(_OrderingOp):
    """An ordering operation without operands and properties."""

    assembly_format = "attr-dict"


class BarrierOp(_PlainOp, name="simt.barrier"):
    """All lanes of the workgroup meet. Writes before it are visible to all after it."""


class BarrierArriveOp(_PlainOp, name="simt.barrier_arrive"):
    """The first half of a barrier: publish the writes of this subgroup before it.

    `BarrierWaitOp` follows in the same block, with no other arrival between.
    """


class BarrierWaitOp(_PlainOp, name="simt.barrier_wait"):
    """The second half: wait until all have arrived; their writes are visible then."""


class NamedBarrierOp(_OrderingOp, name="simt.named_barrier"):
    """Some subgroups of the workgroup meet: those that reach a barrier of this number.

    Attributes:
        number: the number of the barrier.
        subgroups: how many subgroups meet each time. All barriers of one ``number``
            have the same.
    """

    number = subgroups = irdl.prop_def(builtin.IntegerAttr[builtin.I64])
    assembly_format = "$number `of` $subgroups attr-dict"

    def verify_(self) -> None:
        count = self.subgroups.value.data
        check(count > 0, "{} subgroups do not meet", count)


class FenceOp(_OrderingOp, name="simt.fence"):
    """Others see the writes of this lane before the fence before those after it.

    Attributes:
        scope: the others: ``workgroup``, ``device`` or ``system``.
        memory: order writes to ``global`` or to ``local`` memory; absent: to both.
    """

    scope = irdl.prop_def(builtin.StringAttr)
    memory = irdl.opt_prop_def(builtin.StringAttr)
    assembly_format = "$scope attr-dict"

    @property
    def spaces(self) -> tuple[str, ...]:
        """The spaces whose writes are ordered."""
        return SPACES if self.memory is None else (self.memory.data,)

    def verify_(self) -> None:
        scope = self.scope.data
        check(scope in SCOPES, "`scope` is one of {}, found {}", SCOPES, scope)
        for space in self.spaces:
            check(space in SPACES, "`memory` is one of {}, found {}", SPACES, space)


# Debugging ----------------------------------------------------------------------------


Shape = Sequence[int] | None
"""The shape of a printed value: one or two sizes; None for a number."""


def _shapes(shapes: Sequence[Shape]) -> Attribute:
    return builtin.ArrayAttr([dense_i64(shape or ()) for shape in shapes])


class RecordOp(XetlOp, makers={"shapes": _shapes}, traits=READS_AND_WRITES):
    """Base class of records: a text, and values for its fields.

    Attributes:
        shapes: one for each field: ``[]`` for a number, ``[n]`` or ``[rows, columns]``.
        unsigned: indices of the fields whose integers are unsigned.
    """

    arguments = irdl.var_operand_def()
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
    """Print a line. One subgroup of a program executes it."""

    assembly_format = "$template (`(` $arguments^ `:` type($arguments) `)`)? attr-dict"


class AssertOp(RecordOp, name="simt.assert"):
    """If ``condition`` is false, write a record and end the workgroup.

    The condition is the same in every lane. The subgroup ends at once, or all subgroups
    end at the next barrier. The launch then fails with the text and the location of the
    operation.
    """

    condition = irdl.operand_def(builtin.I1)
    assembly_format = (
        "$condition `,` $template (`(` $arguments^ `:` type($arguments) `)`)? attr-dict"
    )
