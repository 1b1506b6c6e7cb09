"""The ``xsmm`` dialect: batch-reduce matrix multiplication and its packing.

The ``cpu`` dialect is in `cpu_ops.py`; this module exports its operations, too.

A K loop (or a single ``tile_mma``) is raised to ``xsmm.brgemm.tile``, which still has
tiles and vectors as operands. Once buffers exist it becomes ``pack`` and
``block_gemm``, and each of these becomes a call of one micro-kernel function.

Source: seed 003 (Intel AMX tile configuration, tpp-mlir), libxsmm's BRGEMM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from xdsl import irdl
from xdsl.dialects import builtin
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
    Entries that are not printed are 0, for example the signs of f32.
    """

    name = "xsmm.plan"

    def print_parameter(self, printer: Printer) -> None:
        """Print the entries that are not 0."""
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
        """Parse what `print_parameter` prints, in any order."""

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


_ELEMENTS: dict[str, Attribute] = {
    **{"f32": builtin.f32, "f64": builtin.f64, "bf16": builtin.bf16},
    **{"i8": builtin.i8, "i16": builtin.i16, "i32": builtin.i32},
}


def element_attribute(name: str) -> Attribute:
    """Return the type that micro-kernels call ``name``."""
    return _ELEMENTS[name]


def element_name(value: SSAValue) -> str:
    """Return the element type of a tile, vector or memref by micro-kernels' names."""
    type_ = value.type
    assert isinstance(type_, TileType) or is_vector(type_) or is_memref(type_)
    element = type_.element_type
    # Floats are named without xDSL's printer, which takes 3 ms to load and to print
    # with.
    return element.name if isinstance(element, builtin.AnyFloat) else str(element)


def operand_shape(value: SSAValue) -> tuple[int, int]:
    """Return the rows and columns of a tile or a rank-2 vector."""
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

    ``a`` is (m, k) and ``b`` (k, n). Each is a tile that moves by k along its k
    dimension from one i to the next, or a vector if ``count`` is absent (then there is
    one product). ``trans_a``/``trans_b``: the operand is stored (k, m)/(n, k) and its
    transpose is multiplied. ``a_unsigned``/``b_unsigned``: its i8 are unsigned (else
    they are signed). ``rows``/``cols``: how many rows and columns of the result are
    read; other elements may have any value (absent: all are read, padding included).
    ``packed``: b, packed for many programs; ``packed_panel`` is the first of this
    program's panels, ``panel_stride`` the distance of its panels in elements,
    ``packed_k`` the place of the first k in them. ``is_packed``: whether it has been
    packed (absent: yes). ``plan``: how it is computed, and ``kernel``: its
    micro-kernel, for one register tile and ``kc`` of k at a time; both are absent
    before ``plan-gemm``.
    """

    a = b = irdl.operand_def(irdl.base(TileType) | irdl.base(builtin.VectorType))
    acc = irdl.opt_operand_def(builtin.VectorType)
    count = rows = cols = irdl.opt_operand_def(builtin.IndexType)
    packed = irdl.opt_operand_def(builtin.MemRefType)
    packed_panel = panel_stride = packed_k = irdl.opt_operand_def(builtin.IndexType)
    is_packed = irdl.opt_operand_def(builtin.i1)
    kernel = irdl.opt_operand_def(builtin.i64)
    trans_a = trans_b = a_unsigned = b_unsigned = irdl.opt_prop_def(builtin.UnitAttr)
    plan = irdl.opt_prop_def(PlanAttr)
    result = irdl.result_def(builtin.VectorType)
    assembly_format = (
        "(`(` `kernel` `=` $kernel^ `)`)? $a `,` $b (`times` $count^)? "
        "(`plus` $acc^ `:` type($acc))? (`rows` $rows^)? (`cols` $cols^)? "
        "(`packed` `(` $packed^ `:` type($packed) `,` `panel` $packed_panel `,` "
        "`panel_stride` $panel_stride `,` `k` $packed_k `)`)? (`if` $is_packed^)? "
        "attr-dict `:` type($a) `,` type($b) `->` type($result)"
    )

    def changed(self, **changed: SSAValue | Blocking | None) -> BrgemmTileOp:
        """Return the same product with some operands or properties changed."""
        given: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        given |= {**changed, "location": self.location}
        return BrgemmTileOp(self.result.type, **given)

    def blocking(self) -> Blocking:
        """Return the plan; raise an InternalError if there is none yet."""
        if self.plan is None:
            raise InternalError("a product has no plan: `plan-gemm` comes first")
        return self.plan.data

    def shape(self) -> tuple[int, int, int]:
        """Return (m, n, k) of one product, in elements."""
        m, k = operand_shape(self.a)
        _, n = operand_shape(self.result)
        return (k, n, m) if self.trans_a is not None else (m, n, k)

    @property
    def unsigned(self) -> tuple[bool, bool]:
        """Which of A and B hold unsigned bytes."""
        return self.a_unsigned is not None, self.b_unsigned is not None

    def check_width(self) -> None:
        """Check that a plan that was changed by hand fits the packed panels.

        Raises:
            IRError: the panels have another width.
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
    """Return the micro-kernel of a plan: its register tile, ``kc`` of k at a time.

    Row distances are those of panels and of scratch. The distance of A is 0: it is
    known at run time, because A may be read in the user's memory.
    """
    how, mr, nr, kc = blocking.arithmetic, blocking.mr, blocking.nr, blocking.kc
    same = how.compute == how.accumulator
    return BrgemmDispatchOp(
        sizes=(mr, nr, kc, 0, nr, blocking.ldc, kc, kc * nr),
        data_type=how.compute if same else f"{how.compute}_{how.accumulator}",
        flags=["vnni_b" if how.k_pack > 1 else "none"],
    )


class BlockOp(XetlOp):
    """Base of the operations that become calls of a micro-kernel."""

    plan = irdl.prop_def(PlanAttr)

    def blocking(self) -> Blocking:
        """The plan."""
        return self.plan.data


class PackOp(BlockOp, name="xsmm.pack"):
    """Copy a block of ``source``, at (row, col), to where products read it.

    The place of the operation decides who copies: the launch, a thread or a program.
    The block is ``rows x cols`` elements of ``operand`` a, stored (m, k), or b, stored
    (k, n); elements outside ``rows_valid`` x ``cols_valid`` become zero. ``dest``
    holds, from element ``offset`` on, rows of a or panels of b, ``stride`` elements
    apart.
    """

    source = irdl.operand_def(builtin.MemRefType)
    row = col = rows_valid = cols_valid = rows = cols = irdl.operand_def(
        builtin.IndexType
    )
    dest = irdl.operand_def(builtin.MemRefType)
    offset = stride = irdl.operand_def(builtin.IndexType)
    operand = irdl.prop_def(builtin.StringAttr)

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
    """Insert a `PackOp`: ``numbers`` are row to cols, ``at`` are offset and stride."""
    values = [source, *map(build.index, numbers), dest, *map(build.index, at)]
    build.add(PackOp(*values, operand=operand, plan=plan))


class Output(NamedTuple):
    """The place in the user's matrix of a product's first element.

    Attributes:
        matrix: the matrix; its columns are contiguous.
        cols: how many columns are stored.
        is_wanted: whether the product is stored there now.
    """

    matrix: SSAValue
    row: SSAValue
    col: SSAValue
    cols: SSAValue
    is_wanted: SSAValue


class Later(NamedTuple):
    """The place in a matrix of what the program packs next, if it continues so.

    It may lie outside of the matrix: it is prefetched if ``is_wanted``, but not read.
    """

    matrix: SSAValue
    k: SSAValue
    n: SSAValue
    is_wanted: SSAValue


class BlockGemmOp(BlockOp, name="xsmm.block_gemm"):
    """Compute ``c[:rows] += a[m0 : m0 + rows, k0 : k0 + k] @ panels``; c is scratch.

    If ``accumulate`` is false, the values in c are overwritten. If ``is_wanted``, the
    sums are stored to ``cols`` columns of ``out`` from (out_row, out_col) on, in its
    type, and not to c. The region ``epilogue``, if it has a block, computes the stored
    elements: its arguments are a vector of sums and their row and first column in
    ``out``. If ``is_packing``, the program packs the part of ``next_b`` at (next_k,
    next_n) next. ``ldb`` is the elements from one row of a panel to the next, and
    ``b_cols`` the columns that may be read; if they are absent, panels have no gaps.
    """

    a = irdl.operand_def(builtin.MemRefType)
    m0 = k0 = rows = k = irdl.operand_def(builtin.IndexType)
    b = irdl.operand_def(builtin.MemRefType)
    b_offset = panel_stride = panels = irdl.operand_def(builtin.IndexType)
    c = irdl.operand_def(builtin.MemRefType)
    accumulate = irdl.opt_operand_def(builtin.i1)
    out = irdl.opt_operand_def(builtin.MemRefType)
    out_row = out_col = cols = irdl.opt_operand_def(builtin.IndexType)
    is_wanted = irdl.opt_operand_def(builtin.i1)
    next_b = irdl.opt_operand_def(builtin.MemRefType)
    next_k = next_n = irdl.opt_operand_def(builtin.IndexType)
    is_packing = irdl.opt_operand_def(builtin.i1)
    ldb = b_cols = irdl.opt_operand_def(builtin.IndexType)
    epilogue = irdl.opt_region_def()

    def output(self) -> Output | None:
        """Return the place in the user's matrix, if the product may go there."""
        known = [value for value in self._output if value is not None]
        return Output(*known) if known else None

    def later(self) -> Later | None:
        """Return the place of what is packed next, if that is known."""
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
        if (self.ldb is None) != (self.b_cols is None):
            raise VerifyException("ldb, b_cols: both or none")


class SkinnyGemmOp(BlockOp, name="xsmm.skinny_gemm"):
    """``c[:rows, :n] += a[m0 :, k0 :] @ b[bk0 :, bn0 :]`` over ``k``, b unpacked.

    All elements exist, none is padding. ``b`` is (k, n) and contiguous along one
    dimension, a part of a matrix of ``elements`` elements, by which prefetches are
    chosen.
    """

    a = irdl.operand_def(builtin.MemRefType)
    m0 = k0 = rows = k = irdl.operand_def(builtin.IndexType)
    b = irdl.operand_def(builtin.MemRefType)
    bk0 = bn0 = n = elements = irdl.operand_def(builtin.IndexType)
    c = irdl.operand_def(builtin.MemRefType)


XSMM = Dialect("xsmm", [*Xsmm.operations, *operations_of(__name__)], [PlanAttr])
