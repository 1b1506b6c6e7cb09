"""The ``cpu`` dialect: memory, logs, fibers and tiles of a launch."""

from __future__ import annotations

from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Dialect
from xdsl.traits import NoTerminator, Pure

from xetl.dialects.operation import XetlOp, operations_of
from xetl.dialects.traits import READS_AND_WRITES
from xetl.dialects.type_rules import like


class ViewAddressOp(XetlOp, name="cpu.view_address"):
    """A memref at an integer address; sizes and strides in elements."""

    address = irdl.operand_def(Attribute)
    sizes = strides = irdl.var_operand_def(builtin.IndexType)
    result = irdl.result_def(builtin.MemRefType)


class HiddenOp(XetlOp, name="cpu.hidden", traits=[Pure()]):
    """A number hidden from LLVM, so that masks made of it stay masks of instructions.

    LLVM turns a known mask into shuffles, with arbitrary values in lanes that are not
    chosen: computing with denormal numbers there takes 20 times as long.
    """

    number = irdl.operand_def(builtin.IndexType)
    result = irdl.result_def(like("number"))


class CompareAndSwapOp(XetlOp, name="cpu.compare_and_swap", traits=READS_AND_WRITES):
    """Write ``value`` if memory has the bits of ``expected``; return the old value."""

    expected = value = irdl.operand_def()
    memref = irdl.operand_def(builtin.MemRefType)
    indices = irdl.var_operand_def(builtin.IndexType)
    result = irdl.result_def(like("value"))


class PackedMemoryOp(XetlOp, name="cpu.packed_memory"):
    """Memory for ``count`` elements of a packed operand of the launch.

    The launch may pass it in from an earlier one. If it does not, memory for
    ``own_count`` elements is reserved only if ``is_wanted``. ``is_there``: whether
    there is memory; ``is_own``: whether it belongs to this launch alone;
    ``is_missing``: whether the operand must still be packed into it. The packed
    elements depend only on ``source`` (a matrix of argument number ``argument``),
    ``facts`` (indices) and ``layout``.
    """

    count = own_count = irdl.operand_def(builtin.IndexType)
    source = irdl.operand_def(builtin.MemRefType)
    is_wanted = irdl.operand_def(builtin.i1)
    facts = irdl.var_operand_def(builtin.IndexType)
    argument = irdl.prop_def(builtin.IntegerAttr[builtin.I64])
    layout = irdl.prop_def(builtin.DenseArrayBase)
    memory = irdl.result_def(builtin.MemRefType)
    is_missing = is_there = is_own = irdl.result_def(builtin.i1)


class ConstantMemoryOp(XetlOp, name="cpu.constant_memory", traits=[Pure()]):
    """Memory that holds the elements of a constant, row by row, and never changes."""

    value = irdl.prop_def(builtin.DenseIntOrFPElementsAttr)
    result = irdl.result_def(builtin.MemRefType)


class LogOp(XetlOp, name="cpu.log"):
    """Write a line, or a failed assertion, to the log of the launch.

    Values are scalars, or memrefs for vectors (their first ``shape`` elements count).
    With a condition it writes only if that is false, and then ends the program.
    """

    condition = irdl.opt_operand_def(builtin.i1)
    values = irdl.var_operand_def(Attribute)
    template = irdl.prop_def(builtin.StringAttr)
    types = irdl.prop_def(builtin.ArrayAttr[Attribute])
    unsigned = irdl.opt_prop_def(builtin.DenseArrayBase)


class FibersOp(XetlOp, name="cpu.fibers", traits=[NoTerminator()]):
    """Run the region ``count`` times at once: each fiber gets its number.

    Fibers take turns on one thread: a fiber runs until it reaches ``cpu.barrier`` or
    ends. Buffers inside belong to one fiber.
    """

    count = irdl.prop_def(builtin.IntegerAttr[builtin.I64])
    body = irdl.region_def("single_block")

    def fibers(self) -> int:
        """Return the number of fibers."""
        return self.count.value.data


class BarrierOp(XetlOp, name="cpu.barrier"):
    """Wait until all fibers of the program have reached a barrier."""


class ThreadCountOp(XetlOp, name="cpu.thread_count", traits=[Pure()]):
    """How many threads the launch may use."""

    result = irdl.result_def(builtin.IndexType)


class ThreadNumberOp(XetlOp, name="cpu.thread_number"):
    """In a parallel loop: the number of the thread, below `ThreadCountOp`."""

    result = irdl.result_def(builtin.IndexType)


class IsNewOp(XetlOp, name="cpu.is_new"):
    """In a parallel loop: whether the value differs from this thread's last one.

    The first time it is true. The value must not be negative.
    """

    value = irdl.operand_def(builtin.IndexType)
    result = irdl.result_def(builtin.i1)


class ThreadTilesOp(XetlOp, name="cpu.thread_tiles"):
    """In a parallel loop: each thread of it holds AMX tiles.

    ``setup`` runs before a thread's first trip and ``reset`` after its last. Both are
    kernels of `xsmm.IntelAMXtileConfig`: our own (the tiles of `microkernels.amx`) or,
    with ``library``, those of the called library.
    """

    setup = reset = irdl.operand_def(builtin.i64)
    library = irdl.opt_prop_def(builtin.UnitAttr)


CPU = Dialect("cpu", operations_of(__name__))
