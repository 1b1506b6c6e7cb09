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
    """A number that LLVM is not to know: masks made of it stay masks of instructions.

    Of a mask that it knows LLVM makes shuffles, and has anything in lanes that are not
    chosen: what is computed of denormal numbers there takes 20 times as long.
    """

    number = irdl.operand_def(builtin.IndexType)
    result = irdl.result_def(like("number"))


class CompareAndSwapOp(XetlOp, name="cpu.compare_and_swap", traits=READS_AND_WRITES):
    """Write ``value`` where memory has the bits of ``expected``; gives the old one."""

    expected = value = irdl.operand_def()
    memref = irdl.operand_def(builtin.MemRefType)
    indices = irdl.var_operand_def(builtin.IndexType)
    result = irdl.result_def(like("value"))


class PackedMemoryOp(XetlOp, name="cpu.packed_memory"):
    """Memory for ``count`` elements of a packed operand of the launch.

    The launch may bring it from an earlier one; if it does not, there is memory, for
    ``own_count`` elements, only if that ``is_wanted``. ``is_there``: whether there is
    memory; ``is_own``: whether it is this launch's alone; ``is_missing``: whether the
    operand has yet to be packed into it. ``source`` (a matrix of argument number
    ``argument``), ``facts`` (indices) and ``layout`` are all that the packed elements
    depend on.
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
    With a condition it writes only if that is false, and ends the program then.
    """

    condition = irdl.opt_operand_def(builtin.i1)
    values = irdl.var_operand_def(Attribute)
    template = irdl.prop_def(builtin.StringAttr)
    types = irdl.prop_def(builtin.ArrayAttr[Attribute])
    unsigned = irdl.opt_prop_def(builtin.DenseArrayBase)


class FibersOp(XetlOp, name="cpu.fibers", traits=[NoTerminator()]):
    """Run the region ``count`` times at once: each takes its number.

    They take turns on one thread: a fiber runs until it meets ``cpu.barrier`` or ends.
    Buffers inside belong to one fiber.
    """

    count = irdl.prop_def(builtin.IntegerAttr[builtin.I64])
    body = irdl.region_def("single_block")

    def fibers(self) -> int:
        """How many."""
        return self.count.value.data


class BarrierOp(XetlOp, name="cpu.barrier"):
    """Wait until all fibers of the program are here."""


class ThreadCountOp(XetlOp, name="cpu.thread_count", traits=[Pure()]):
    """How many threads the launch may use."""

    result = irdl.result_def(builtin.IndexType)


class ThreadNumberOp(XetlOp, name="cpu.thread_number"):
    """In a parallel loop: the number of the thread, below `ThreadCountOp`."""

    result = irdl.result_def(builtin.IndexType)


class IsNewOp(XetlOp, name="cpu.is_new"):
    """In a parallel loop: whether this thread meets another value than the last time.

    The first time it does. The value is not negative.
    """

    value = irdl.operand_def(builtin.IndexType)
    result = irdl.result_def(builtin.i1)


class ThreadTilesOp(XetlOp, name="cpu.thread_tiles"):
    """In a parallel loop: each thread of it holds AMX tiles.

    ``setup`` runs before a thread's first trip and ``reset`` after its last, both
    being kernels of `xsmm.IntelAMXtileConfig`: of our own (the tiles of
    `microkernels.amx`), or, with ``library``, of the one that is called.
    """

    setup = reset = irdl.operand_def(builtin.i64)
    library = irdl.opt_prop_def(builtin.UnitAttr)


CPU = Dialect("cpu", operations_of(__name__))
