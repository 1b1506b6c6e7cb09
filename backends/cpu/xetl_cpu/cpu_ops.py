"""The ``cpu`` dialect: memory, logs, fibers and tiles of a launch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoTerminator, Pure


@irdl_op_definition
class ViewAddressOp(IRDLOperation):
    """A memref at an integer address; sizes and strides in elements."""

    name = "cpu.view_address"
    address = operand_def(Attribute)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    result = result_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        address: SSAValue,
        sizes: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        result_type: Attribute,
    ) -> None:
        super().__init__(
            operands=[[address], list(sizes), list(strides)], result_types=[result_type]
        )


@irdl_op_definition
class PackedMemoryOp(IRDLOperation):
    """Memory for ``count`` elements of a packed operand of the launch.

    The launch may bring it from an earlier one; if it does not, there is memory, for
    ``own_count`` elements, only if that ``is_wanted``. ``is_there``: whether there is
    memory; ``is_own``: whether it is this launch's alone; ``is_missing``: whether the
    operand has yet to be packed into it. ``source`` (a matrix of argument number
    ``argument``), ``facts`` (indices) and ``layout`` are all that the packed elements
    depend on.
    """

    name = "cpu.packed_memory"
    count = operand_def(IndexType)
    own_count = operand_def(IndexType)
    source = operand_def(MemRefType)
    is_wanted = operand_def(i1)
    facts = var_operand_def(IndexType)
    argument = prop_def(IntegerAttr[I64])
    layout = prop_def(DenseArrayBase)
    memory = result_def(MemRefType)
    is_missing = result_def(i1)
    is_there = result_def(i1)
    is_own = result_def(i1)

    def __init__(
        self,
        count: SSAValue,
        own_count: SSAValue,
        source: SSAValue,
        is_wanted: SSAValue,
        facts: Sequence[SSAValue],
        argument: int,
        layout: Sequence[int],
        memory_type: Attribute,
    ) -> None:
        super().__init__(
            operands=[count, own_count, source, is_wanted, list(facts)],
            properties={
                "argument": IntegerAttr(argument, i64),
                "layout": DenseArrayBase.from_list(i64, list(layout)),
            },
            result_types=[memory_type, i1, i1, i1],
        )


@irdl_op_definition
class ConstantMemoryOp(IRDLOperation):
    """Memory that holds the elements of a constant, row by row, and never changes."""

    name = "cpu.constant_memory"
    value = prop_def(DenseIntOrFPElementsAttr)
    result = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(self, value: Attribute, result_type: Attribute) -> None:
        super().__init__(properties={"value": value}, result_types=[result_type])


@irdl_op_definition
class LogOp(IRDLOperation):
    """Write a line, or a failed assertion, to the log of the launch.

    Values are scalars, or memrefs for vectors (their first ``shape`` elements count).
    With a condition it writes only if that is false, and ends the program then.
    """

    name = "cpu.log"
    condition = opt_operand_def(i1)
    values = var_operand_def(Attribute)
    template = prop_def(StringAttr)
    types = prop_def(ArrayAttr[Attribute])
    unsigned = opt_prop_def(DenseArrayBase)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        template: StringAttr,
        condition: SSAValue | None,
        values: Sequence[SSAValue],
        types: Sequence[Attribute],
        unsigned: Attribute | None,
    ) -> None:
        super().__init__(
            operands=[[] if condition is None else [condition], list(values)],
            properties={
                "template": template,
                "types": ArrayAttr(types),
                "unsigned": unsigned,
            },
        )


@irdl_op_definition
class FibersOp(IRDLOperation):
    """Run the region ``count`` times at once: each takes its number.

    They take turns on one thread: a fiber runs until it meets ``cpu.barrier`` or ends.
    Buffers inside belong to one fiber.
    """

    name = "cpu.fibers"
    count = prop_def(IntegerAttr[I64])
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, count: int, body: Region) -> None:
        super().__init__(properties={"count": IntegerAttr(count, i64)}, regions=[body])

    def fibers(self) -> int:
        """How many."""
        return self.count.value.data


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Wait until all fibers of the program are here."""

    name = "cpu.barrier"


@irdl_op_definition
class ThreadCountOp(IRDLOperation):
    """How many threads the launch may use."""

    name = "cpu.thread_count"
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class ThreadNumberOp(IRDLOperation):
    """In a parallel loop: the number of the thread, below `ThreadCountOp`."""

    name = "cpu.thread_number"
    result = result_def(IndexType)

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class IsNewOp(IRDLOperation):
    """In a parallel loop: whether this thread meets another value than the last time.

    The first time it does. The value is not negative.
    """

    name = "cpu.is_new"
    value = operand_def(IndexType)
    result = result_def(i1)

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value], result_types=[i1])


@irdl_op_definition
class ThreadTilesOp(IRDLOperation):
    """In a parallel loop: each thread of it holds AMX tiles.

    ``setup`` runs before a thread's first trip and ``reset`` after its last, both
    being kernels of `xsmm.IntelAMXtileConfig`: of our own (the tiles of
    `microkernels.amx`), or, with ``library``, of the one that is called.
    """

    name = "cpu.thread_tiles"
    setup = operand_def(i64)
    reset = operand_def(i64)
    library = opt_prop_def(UnitAttr)

    def __init__(self, setup: SSAValue, reset: SSAValue) -> None:
        super().__init__(operands=[setup, reset])


CPU = Dialect(
    "cpu",
    [
        ThreadCountOp,
        ThreadNumberOp,
        IsNewOp,
        ThreadTilesOp,
        ViewAddressOp,
        PackedMemoryOp,
        ConstantMemoryOp,
        LogOp,
        FibersOp,
        BarrierOp,
    ],
)
