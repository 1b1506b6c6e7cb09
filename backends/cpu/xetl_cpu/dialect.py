"""The ``xsmm`` dialect: batch-reduce matrix multiplication and its packing.

The dialect ``cpu`` is that of `cpu_ops.py`; its operations can be had here, too.

``xsmm.brgemm.tile`` is what a K loop (or a single ``tile_mma``) is raised to. It still
speaks of tiles and vectors; ``pack`` and ``block_gemm`` are what is left of it once
buffers exist, and each becomes a call of one micro-kernel function.

Source: seed 003 (Intel AMX tile configuration, tpp-mlir), libxsmm's BRGEMM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from xdsl import irdl
from xdsl.dialects.builtin import (
    IndexType,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
    bf16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Data, Dialect, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import Index, check, is_memref, is_vector
from xetl.dialects.operation import XetlOp, operations_of
from xetl.dialects.xetile import TileType
from xetl.dialects.xsmm import SIZES, BrgemmDispatchOp, Xsmm
from xetl.errors import InternalError, IRError
from xetl.ir.builder import Builder
from xetl_cpu.cpu_ops import *
from xetl_cpu.microkernels.arithmetic import Arithmetic
from xetl_cpu.microkernels.blocking import Blocking

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

_NAMES = ("dtype", "instruction", "compute", "accumulator")
_SIGNS = ("a_unsigned", "b_unsigned")
_NUMBERS = tuple(
    each.name for each in fields(Blocking) if each.name not in ("dtype", "arithmetic")
)
_FLAGS = (*_SIGNS, "is_called")
_KEYS = (*_NAMES, "k_pack", *_SIGNS, *_NUMBERS)


@irdl.irdl_attr_definition
class PlanAttr(Data[Blocking]):
    """``#xsmm.plan``: the blocking of a product, as an attribute of its operations.

        #xsmm.plan<dtype = f32, instruction = fma, ..., mr = 8, nr = 32, mc = 64>

    It holds numbers and names, which `microkernels/blocking.py` chooses and explains.
    What is not written is 0: the signs of f32, for example.
    """

    name = "xsmm.plan"

    def print_parameter(self, printer: Printer) -> None:
        """Write what is not 0."""
        plan, how = self.data, self.data.arithmetic
        values: dict[str, Any] = {key: getattr(plan, key) for key in _NUMBERS}
        values |= dict(zip(_SIGNS, how.unsigned, strict=True))
        values |= {"dtype": plan.dtype, "k_pack": how.k_pack}
        values |= {key: getattr(how, key) for key in _NAMES[1:]}
        entries = (
            f"{key} = {values[key] if key in _NAMES else int(values[key])}"
            for key in _KEYS
            if values[key]
        )
        with printer.in_angle_brackets():
            printer.print_string(", ".join(entries))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Blocking:
        """Read what `print_parameter` writes, in any order."""

        def entry() -> tuple[str, Any]:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            if key in _NAMES:
                return key, parser.parse_identifier()
            if key not in _KEYS:
                parser.raise_error(f"a plan has no `{key}`")
            number = parser.parse_integer()
            return key, bool(number) if key in _FLAGS else number

        pairs = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry)
        values: dict[str, Any] = (
            dict.fromkeys(_NUMBERS, 0) | dict.fromkeys(_FLAGS, False) | dict(pairs)
        )
        missing = [key for key in (*_NAMES, "k_pack") if key not in values]
        if missing:
            parser.raise_error(f"a plan needs {', '.join(missing)}")
        how = {key: values.pop(key) for key in (*_NAMES[1:], "k_pack")}
        signs = (values.pop(_SIGNS[0]), values.pop(_SIGNS[1]))
        return Blocking(arithmetic=Arithmetic(**how, unsigned=signs), **values)


_OPERAND = irdl.base(TileType) | irdl.base(VectorType)


_ELEMENTS: dict[str, Attribute] = {
    **{"f32": f32, "f64": f64, "bf16": bf16},
    **{"i8": i8, "i16": i16, "i32": i32},
}


def element_attribute(name: str) -> Attribute:
    """The type that micro-kernels call ``name``."""
    return _ELEMENTS[name]


def element_name(value: SSAValue) -> str:
    """The element type of a tile, vector or memref as micro-kernels call it."""
    type_ = value.type
    assert isinstance(type_, TileType) or is_vector(type_) or is_memref(type_)
    return str(type_.element_type)


def operand_shape(value: SSAValue) -> tuple[int, int]:
    """Rows and columns of a tile or a rank-2 vector."""
    type_ = value.type
    if isinstance(type_, TileType):
        rows, cols = type_.shape
    else:
        assert is_vector(type_)
        rows, cols = type_.get_shape()
    return rows, cols


_FIELDS = (
    *("a", "b", "acc", "count", "rows", "cols", "kernel", "plan", "is_packed"),
    *("packed", "packed_panel", "panel_stride", "packed_k"),
    *("trans_a", "trans_b", "a_unsigned", "b_unsigned"),
)


class BrgemmTileOp(XetlOp, name="xsmm.brgemm.tile"):
    """``acc + sum over i < count of a_i @ b_i``.

    ``a`` is (m, k) and ``b`` (k, n): a tile that moves by k along its k dimension
    from one i to the next, or a vector when ``count`` is absent (then there is one
    product). ``trans_a``/``trans_b``: the operand is stored (k, m)/(n, k) and its
    transpose is meant. ``a_unsigned``/``b_unsigned``: its bytes are (i8 is else
    signed). ``rows``/``cols``: how much of the result anybody reads; the
    rest may hold anything (absent: all of it, padding included). ``packed``: b,
    packed for many programs; ``packed_panel`` is the first of this program's panels,
    ``panel_stride`` is the distance of its panels in elements, ``packed_k`` where in
    them the first k stands. ``is_packed``: whether it has been packed (absent: yes).
    ``plan``: how it is computed, and ``kernel``: the micro-kernel that does it, one
    register tile and ``kc`` of k at a time; both are absent before ``plan-gemm``.
    """

    a = b = irdl.operand_def(_OPERAND)
    acc = irdl.opt_operand_def(VectorType)
    count = rows = cols = irdl.opt_operand_def(IndexType)
    packed = irdl.opt_operand_def(MemRefType)
    packed_panel = panel_stride = packed_k = irdl.opt_operand_def(IndexType)
    is_packed = irdl.opt_operand_def(i1)
    kernel = irdl.opt_operand_def(i64)
    trans_a = trans_b = a_unsigned = b_unsigned = irdl.opt_prop_def(UnitAttr)
    plan = irdl.opt_prop_def(PlanAttr)
    result = irdl.result_def(VectorType)
    assembly_format = (
        "(`(` `kernel` `=` $kernel^ `)`)? $a `,` $b (`times` $count^)? "
        "(`plus` $acc^ `:` type($acc))? (`rows` $rows^)? (`cols` $cols^)? "
        "(`packed` `(` $packed^ `:` type($packed) `,` `panel` $packed_panel `,` "
        "`panel_stride` $panel_stride `,` `k` $packed_k `)`)? (`if` $is_packed^)? "
        "attr-dict `:` type($a) `,` type($b) `->` type($result)"
    )

    def changed(self, **changed: SSAValue | Blocking | None) -> BrgemmTileOp:
        """The same product but for some operands or properties."""
        given: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        given |= {**changed, "location": self.location}
        return BrgemmTileOp(self.result.type, **given)

    def blocking(self) -> Blocking:
        """The plan; an InternalError if there is none yet."""
        if self.plan is None:
            raise InternalError("a product has no plan: `plan-gemm` comes first")
        return self.plan.data

    def shape(self) -> tuple[int, int, int]:
        """(m, n, k) of one product, in elements."""
        m, k = operand_shape(self.a)
        _, n = operand_shape(self.result)
        return (k, n, m) if self.trans_a is not None else (m, n, k)

    @property
    def unsigned(self) -> tuple[bool, bool]:
        """Which of A and B hold unsigned bytes."""
        return self.a_unsigned is not None, self.b_unsigned is not None

    def check_width(self) -> None:
        """A plan that was changed by hand is followed, but packed panels stay.

        Raises:
            IRError: they are of another width.
        """
        dispatch = None if self.kernel is None else self.kernel.owner
        plan = self.blocking()
        if isinstance(dispatch, BrgemmDispatchOp) and plan.problem() is None:
            width = dispatch.size_list()[SIZES.index("n")]
            if width != plan.nr:
                text = f"nr = {plan.nr}, but panels are packed for {width} columns"
                raise IRError(
                    f"a plan of a product cannot be followed: {text}", code="X0705"
                )

    def verify_(self) -> None:
        m, n, k = self.shape()
        b = operand_shape(self.b)
        expected = (n, k) if self.trans_b is not None else (k, n)
        check(b == expected, "b is {}, but k = {} and n = {}", b, k, n)
        check((m, n) == operand_shape(self.result), "the result is not (m, n)")
        if self.count is None and isinstance(self.a.type, TileType):
            raise VerifyException("a tile operand needs the number of steps")


def dispatch_of(blocking: Blocking) -> BrgemmDispatchOp:
    """The micro-kernel of a plan: its register tile, ``kc`` of k at a time.

    Row distances are those of panels and of scratch; that of A is 0: it is known when
    the kernel runs, for A may be read where the user has it.
    """
    how, mr, nr, kc = blocking.arithmetic, blocking.mr, blocking.nr, blocking.kc
    same = how.compute == how.accumulator
    return BrgemmDispatchOp(
        sizes=(mr, nr, kc, 0, nr, blocking.ldc, kc, kc * nr),
        data_type=how.compute if same else f"{how.compute}_{how.accumulator}",
        flags=["vnni_b" if how.k_pack > 1 else "none"],
    )


class BlockOp(XetlOp):
    """Shared by the operations that become a call of a micro-kernel."""

    plan = irdl.prop_def(PlanAttr)

    def blocking(self) -> Blocking:
        """The plan."""
        return self.plan.data


class PackOp(BlockOp, name="xsmm.pack"):
    """Copy a block of ``source``, at (row, col), to where products read it.

    Where this stands says who does it: the launch, a thread or a program. The block is
    ``rows x cols`` elements of ``operand`` a, stored (m, k), or b, stored (k, n); those
    outside ``rows_valid`` x ``cols_valid`` are zero. From element ``offset`` of
    ``dest`` on stand, ``stride`` elements apart, rows of a, or panels of b.
    """

    source = irdl.operand_def(MemRefType)
    row = col = rows_valid = cols_valid = rows = cols = irdl.operand_def(IndexType)
    dest = irdl.operand_def(MemRefType)
    offset = stride = irdl.operand_def(IndexType)
    operand = irdl.prop_def(StringAttr)

    @property
    def is_b(self) -> bool:
        """Whether it packs panels of b."""
        return self.operand.data == "b"


def pack(
    build: Builder,
    operand: Literal["a", "b"],
    plan: Blocking,
    source: SSAValue,
    numbers: Sequence[Index],
    dest: SSAValue,
    *at: Index,
) -> None:
    """Insert `PackOp`: ``numbers`` are row to cols, ``at`` are offset and stride."""
    values = [source, *map(build.index, numbers), dest, *map(build.index, at)]
    build.add(PackOp(*values, operand=operand, plan=plan))


class Output(NamedTuple):
    """Where in the user's matrix a product goes: the place of its first element.

    Attributes:
        matrix: its columns are contiguous.
        cols: how many columns are stored.
        is_wanted: whether it goes there now.
    """

    matrix: SSAValue
    row: SSAValue
    col: SSAValue
    cols: SSAValue
    is_wanted: SSAValue


class Later(NamedTuple):
    """Where in a matrix that begins which the program packs next, if it goes on so.

    It may lie outside: it is asked for ahead of time, not read; if ``is_wanted``.
    """

    matrix: SSAValue
    k: SSAValue
    n: SSAValue
    is_wanted: SSAValue


class BlockGemmOp(BlockOp, name="xsmm.block_gemm"):
    """``c[:rows] += a[m0 : m0 + rows, k0 : k0 + k] @ panels``; c is scratch.

    With ``accumulate`` that is false what is in c does not count. If ``is_wanted``, the
    sums go to ``cols`` columns of ``out`` from (out_row, out_col) on, in its type,
    and not to c. What the program packs next begins at (next_k, next_n) of ``next_b``,
    if ``is_packing``.
    """

    a = irdl.operand_def(MemRefType)
    m0 = k0 = rows = k = irdl.operand_def(IndexType)
    b = irdl.operand_def(MemRefType)
    b_offset = panel_stride = panels = irdl.operand_def(IndexType)
    c = irdl.operand_def(MemRefType)
    accumulate = irdl.opt_operand_def(i1)
    out = irdl.opt_operand_def(MemRefType)
    out_row = out_col = cols = irdl.opt_operand_def(IndexType)
    is_wanted = irdl.opt_operand_def(i1)
    next_b = irdl.opt_operand_def(MemRefType)
    next_k = next_n = irdl.opt_operand_def(IndexType)
    is_packing = irdl.opt_operand_def(i1)

    def output(self) -> Output | None:
        """The user's matrix, if the product may go there."""
        known = [value for value in self._output if value is not None]
        return Output(*known) if known else None

    def later(self) -> Later | None:
        """What is packed next, if that is known."""
        known = [value for value in self._later if value is not None]
        return Later(*known) if known else None

    @property
    def _output(self) -> tuple[SSAValue | None, ...]:
        return (self.out, self.out_row, self.out_col, self.cols, self.is_wanted)

    @property
    def _later(self) -> tuple[SSAValue | None, ...]:
        return (self.next_b, self.next_k, self.next_n, self.is_packing)

    def verify_(self) -> None:
        if len({value is None for value in self._output}) > 1:
            raise VerifyException("out, out_row, out_col, cols, is_wanted: all or none")
        if len({value is None for value in self._later}) > 1:
            raise VerifyException("next_b, next_k, next_n, is_packing: all or none")


class SkinnyGemmOp(BlockOp, name="xsmm.skinny_gemm"):
    """``c[:rows, :n] += a[m0 :, k0 :] @ b[bk0 :, bn0 :]`` over ``k``, b unpacked.

    Everything it names exists; ``b`` is (k, n) and contiguous along one dimension, a
    part of a matrix of ``elements``: that may be all that memory gives next.
    """

    a = irdl.operand_def(MemRefType)
    m0 = k0 = rows = k = irdl.operand_def(IndexType)
    b = irdl.operand_def(MemRefType)
    bk0 = bn0 = n = elements = irdl.operand_def(IndexType)
    c = irdl.operand_def(MemRefType)


XSMM = Dialect("xsmm", [*Xsmm.operations, *operations_of(__name__)], [PlanAttr])
