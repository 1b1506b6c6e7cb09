"""Calls of dispatched micro-kernels as the products they compute.

    %k = xsmm.brgemm.dispatch [32, 32, 32, ...] flags = (vnni_b) data_type = bf16
    xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %n)
    ->
    loops over tiles of %c that add %a @ %b up

Backends then choose micro-kernels of their own, and set tiles up for those. The same as
calls of the C functions ``xsmm_*`` is read back: a memref is there the address of its
memory, ``llvm.inttoptr``, and an offset. Source: seed 003, "Lowering to XSMM dialect"
to "Lowering XSMM operations".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import memref_type
from xetl.dialects.memref_layout import constant_index, strides_of
from xetl.dialects.upstream import arith, func, memref
from xetl.dialects.xsmm import (
    DATA_TYPES,
    SIZES,
    BrgemmDispatchOp,
    BrgemmOp,
    DispatchOp,
    TileConfigDispatchOp,
    TileConfigOp,
    gemm_flags_of_calls,
)
from xetl.ir.builder import Builder
from xetl.transforms.legalize_text.batches import Batch, multiply
from xetl.transforms.legalize_text.products import PAIR
from xetl.transforms.rewriting import Rule, Values

_FLAGS = {"none", "beta_0", "vnni_b", "no_reset_tileconfig", "no_setup_tileconfig"}
"""What a batch of products may be dispatched with."""

_ADDRESS = "llvm.inttoptr"


def _brgemm(b: Builder, op: BrgemmOp) -> Values:
    dispatch, count = op.kernel.owner, constant_index(op.batch)
    if not isinstance(dispatch, BrgemmDispatchOp):
        raise VerifyException("its kernel is not dispatched in this function")
    if count is None:
        raise VerifyException("the number of products is no constant")
    flags = {*dispatch.flag_names()}
    others = sorted(flags - _FLAGS)
    if others:
        raise VerifyException(f"there are no products with {', '.join(others)}")
    product = Batch(op.a, op.b, op.c, count, "beta_0" not in flags)
    problem = product.problem() or _disagreement(product, dispatch)
    if problem is not None:
        raise VerifyException(problem)
    multiply(b, product)
    return []


def _disagreement(product: Batch, dispatch: DispatchOp) -> str | None:
    """Where the kernel is for other operands than those it is given."""
    found, wanted = _sizes(product), dispatch.size_list()
    if found != wanted:
        return f"its operands are of {[*found]}, its kernel is for {[*wanted]}"
    if product.in_pairs != ("vnni_b" in dispatch.flag_names()):
        return "b has to be in pairs of k with vnni_b, and only then"
    a, _, c = (memref_type(each).element_type for each in _sides(product))
    name = str(a) if a == c else f"{a}_{c}"
    if name != dispatch.data_type.data:
        return f"its operands are {name}, its kernel is for {dispatch.data_type.data}"
    return None


def _sides(product: Batch) -> tuple[SSAValue, SSAValue, SSAValue]:
    return product.a, product.b, product.c


def _sizes(product: Batch) -> tuple[int, ...]:
    """As they are dispatched: m, n, k, distances of rows, distances of blocks.

    Raises:
        VerifyException: the elements of a row are not side by side.
    """
    types = [memref_type(each) for each in _sides(product)]
    _, m, k = types[0].get_shape()
    (a, lda, *row_a), (b, ldb, *row_b), (ldc, *row_c) = map(_strides, types)
    inner = [PAIR, 1] if product.in_pairs else [1]
    if (row_a, row_b, row_c) != ([1], inner, [1]):
        raise VerifyException("the elements of a row are not side by side")
    ldb = ldb // PAIR if product.in_pairs else ldb
    return m, types[2].get_shape()[1], k, lda, ldb, ldc, a, b


def _strides(type_: MemRefType[Attribute]) -> list[int]:
    return [each or 0 for each in strides_of(type_) or ()]


def _configuration(b: Builder, op: TileConfigOp) -> Values:
    """Backends configure tiles for the micro-kernels that they choose."""
    return []


# C functions --------------------------------------------------------------------------


_DISPATCHES: dict[str, type[DispatchOp]] = {
    "xsmm_brgemm_dispatch": BrgemmDispatchOp,
    "xsmm_intel_amx_tile_config_dispatch": TileConfigDispatchOp,
}
_BRGEMM, _CONFIGURE = "xsmm_brgemm_invoke", "xsmm_intel_amx_tile_config_invoke"


def _call(b: Builder, op: func.CallOp) -> Values | None:
    name, given = op.callee.root_reference.data, op.arguments
    if name == _CONFIGURE:
        return []
    if name in _DISPATCHES:
        return [b.insert(_dispatch(_DISPATCHES[name], given))]
    if name == _BRGEMM:
        type_, kernel, *sides, count = given
        views = [_view(*pair) for pair in zip(sides[::2], sides[1::2])]
        data_type = _type_name(constant_index(type_))
        b.add(BrgemmOp(kernel, *views, count, data_type=data_type))
        return []
    return None


def _dispatch(kind: type[DispatchOp], given: Sequence[SSAValue]) -> DispatchOp:
    numbers = [constant_index(each) for each in given]
    known = [each for each in numbers if each is not None]
    if len(known) != len(numbers) or len(known) != len(SIZES) + 2:
        wanted = f"a type, {', '.join(SIZES)} and flags"
        raise VerifyException(f"a kernel is dispatched with constants: {wanted}")
    type_, *sizes, flags = known
    names = gemm_flags_of_calls(flags)
    return kind(sizes=sizes, data_type=_type_name(type_), flags=names)


def _type_name(number: int | None) -> str:
    named = [name for name, each in DATA_TYPES.items() if each == number]
    if not named:
        raise VerifyException(f"no type of elements has the number {number}")
    return named[0]


def _view(address: SSAValue, offset: SSAValue) -> SSAValue:
    """The memref that an address and an offset in elements are of.

    Raises:
        VerifyException: they are of none, or not of the same.
    """
    found: SSAValue | None = None
    cast = address.owner
    if isinstance(cast, Operation) and cast.name == _ADDRESS:
        number = cast.operands[0].owner
        if isinstance(number, arith.IndexCastOp):
            number = number.operands[0].owner
        if isinstance(number, memref.ExtractAlignedPointerAsIndexOp):
            found = number.operands[0]
    meta = offset.owner
    is_of_it = (
        isinstance(meta, memref.ExtractStridedMetadataOp)
        and meta.operands[0] is found
        and meta.results[1] is offset
    )
    if found is None or not is_of_it:
        raise VerifyException("an operand is not the address and offset of a memref")
    return found


def is_unread(op: Operation) -> bool:
    """Whether ``op`` only says something to calls, which have become products."""
    is_ours = isinstance(op, DispatchOp) or op.name == _ADDRESS
    return is_ours and not any(result.uses for result in op.results)


RULES: dict[type[Operation], Rule] = {
    BrgemmOp: _brgemm,
    TileConfigOp: _configuration,
    func.CallOp: _call,
}
