"""legalize-text: rewrite operations that simpler operations can express.

Why: texts may have any operation of MLIR. An operation that is short for others would
otherwise be one more case in every backend. Parallel loops, switches and regions that
run once become `scf.for` and `scf.if`; `index` becomes `arith` (numbers.py); products,
copies and fills of `linalg` (products.py, batches.py) and calls of dispatched
micro-kernels become loops over tiles; a constant global becomes memory of the program,
filled at the start.

Before: ``math.isnan %v``, ``affine.apply affine_map<(d0) -> (d0 * 4)>(%i)``
After:  ``arith.cmpf uno, %v, %v``, ``arith.muli %i, %c4``

Left alone: everything else. A case that a rule cannot express (an outer product that is
not added, a global that is no constant) is an error with its line.

Before: ``scf.parallel (%i, %j) = ... init (%z) { ... scf.reduce(%v) { ... } }``
After:  ``scf.for %i ... iter_args(%s = %z) { scf.for %j ... iter_args ... { ... } }``

Calls of dispatched micro-kernels are the products they compute:

    %k = xsmm.brgemm.dispatch [32, 32, 32, ...] flags = (vnni_b) data_type = bf16
    xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %n)
    ->
    loops over tiles of %c that add %a @ %b up

Backends then choose their own micro-kernels and set up tiles for them. Calls of the C
functions ``xsmm_*`` are read back in the same way: there a memref is the address of its
memory (``llvm.inttoptr``) and an offset. Source: seed 003, "Lowering to XSMM dialect"
to "Lowering XSMM operations".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from xetl.dialects import base, xsmm
from xetl.dialects.kernel_attributes import PARALLEL
from xetl.dialects.literals import with_type
from xetl.dialects.upstream import arith, cf, func, memref, scf, vector
from xetl.dialects.upstream.memref import GlobalOp
from xetl.dialects.xetile import AssertOp, LoadTileOp, TileTransposeOp
from xetl.ir.builder import Builder, Pass
from xetl.transforms.legalize_text import batches, numbers, products
from xetl.transforms.legalize_text.batches import Batch, legalize_contractions, multiply
from xetl.transforms.legalize_text.products import PAIR
from xetl.transforms.rewriting import Rule, Values, apply_rules

_FLAGS = {"none", "beta_0", "vnni_b", "no_reset_tileconfig", "no_setup_tileconfig"}
"""The flags with which a batch of products may be dispatched."""

_ADDRESS = "llvm.inttoptr"


def _brgemm(b: Builder, op: xsmm.BrgemmOp) -> Values:
    dispatch, count = op.kernel.owner, base.constant_index(op.batch)
    if not isinstance(dispatch, xsmm.BrgemmDispatchOp):
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


def _disagreement(product: Batch, dispatch: xsmm.DispatchOp) -> str | None:
    """Return how the operands differ from the dispatched kernel's, or None."""
    found, wanted = _sizes(product), dispatch.size_list()
    if found != wanted:
        return f"its operands are of {[*found]}, its kernel is for {[*wanted]}"
    if product.in_pairs != ("vnni_b" in dispatch.flag_names()):
        return "b has to be in pairs of k with vnni_b, and only then"
    a, _, c = (base.memref_type(each).element_type for each in _sides(product))
    name = str(a) if a == c else f"{a}_{c}"
    if name != dispatch.data_type.data:
        return f"its operands are {name}, its kernel is for {dispatch.data_type.data}"
    return None


def _sides(product: Batch) -> tuple[SSAValue, SSAValue, SSAValue]:
    return product.a, product.b, product.c


def _sizes(product: Batch) -> tuple[int, ...]:
    """Return the sizes in dispatch order: m, n, k, strides of rows and of blocks.

    Raises:
        VerifyException: the elements of a row are not contiguous.
    """
    _, m, k = base.memref_type(product.a).get_shape()
    (a, lda, *row_a), (b, ldb, *row_b), (ldc, *row_c) = map(
        products.steps, _sides(product)
    )
    inner = [PAIR, 1] if product.in_pairs else [1]
    if (row_a, row_b, row_c) != ([1], inner, [1]):
        raise VerifyException("the elements of a row are not side by side")
    ldb = ldb // PAIR if product.in_pairs else ldb
    return m, base.memref_type(product.c).get_shape()[1], k, lda, ldb, ldc, a, b


# C functions --------------------------------------------------------------------------


_DISPATCHES: dict[str, type[xsmm.DispatchOp]] = {
    "xsmm_brgemm_dispatch": xsmm.BrgemmDispatchOp,
    "xsmm_intel_amx_tile_config_dispatch": xsmm.TileConfigDispatchOp,
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
        data_type = _type_name(base.constant_index(type_))
        b.add(xsmm.BrgemmOp(kernel, *views, count, data_type=data_type))
        return []
    return None


def _dispatch(kind: type[xsmm.DispatchOp], given: Values) -> xsmm.DispatchOp:
    numbers = [base.constant_index(each) for each in given]
    known = [each for each in numbers if each is not None]
    if len(known) != len(numbers) or len(known) != len(xsmm.SIZES) + 2:
        wanted = f"a type, {', '.join(xsmm.SIZES)} and flags"
        raise VerifyException(f"a kernel is dispatched with constants: {wanted}")
    type_, *sizes, flags = known
    names = xsmm.gemm_flags_of_calls(flags)
    return kind(sizes=sizes, data_type=_type_name(type_), flags=names)


def _type_name(number: int | None) -> str:
    named = [name for name, each in xsmm.DATA_TYPES.items() if each == number]
    if not named:
        raise VerifyException(f"no type of elements has the number {number}")
    return named[0]


def _view(address: SSAValue, offset: SSAValue) -> SSAValue:
    """Return the memref that an address and an offset in elements come from.

    Raises:
        VerifyException: they do not come from one memref.
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
    """Whether ``op`` only fed calls that have been replaced, and is now unused."""
    is_ours = isinstance(op, xsmm.DispatchOp) or op.name == _ADDRESS
    return is_ours and not any(result.uses for result in op.results)


Finish = Callable[[Builder, Values], Values]
"""Computes the values that the innermost loop yields from its carried values."""


def legalize_control_flow(op: Operation) -> None:
    """Replace all operations inside ``op`` that have a rule here."""
    for each in list(op.walk()):
        rule = _CONTROL_FLOW.get(type(each))
        values = None if rule is None else rule(Builder.before(each), each)
        if values is not None:
            Rewriter.replace_op(each, [], list(values))


def _nest(
    build: Builder,
    body: Block,
    bounds: Sequence[Sequence[base.Index]],
    inits: Values,
    finish: Finish,
) -> Values:
    """Nest loops around the operations of ``body``, the first outermost."""
    loops: list[scf.ForOp] = []
    all_bounds = [[build.index(each) for each in bound] for bound in bounds]
    for counter, (lower, upper, step) in zip(list(body.args), all_bounds):
        loop = build.for_loop(lower, upper, step, inits)
        if not inits:
            loop.attributes[PARALLEL] = UnitAttr()
        loops.append(loop)
        own_counter, *inits = loop.body.block.args
        counter.replace_all_uses_with(own_counter)
        build = Builder.at_end(loop.body.block, build.location)
    _move(body, build)
    values = finish(build, inits)
    for outer, inner in reversed([*pairwise(loops)]):
        build.add(scf.YieldOp(*values))
        values = inner.results
        build = Builder.at_end(outer.body.block, build.location)
    if not loops:
        return values
    build.add(scf.YieldOp(*values))
    return loops[0].results


def _parallel(build: Builder, op: scf.ParallelOp) -> Values:
    """Replace parallel loops by nested ones, which carry the reductions."""
    end = op.body.block.last_op
    assert isinstance(end, scf.ReduceOp)
    end.detach()

    def reduce(inside: Builder, carried: Values) -> Values:
        found: list[SSAValue] = []
        for pair, region in zip(zip(carried, end.arguments), end.reductions):
            for argument, value in zip(list(region.block.args), pair):
                argument.replace_all_uses_with(value)
            found.append(*_move_and_end(region.block, inside))
        end.erase()
        return found

    bounds = list(zip(op.lower_bounds, op.upper_bounds, op.steps))
    return _nest(build, op.body.block, bounds, op.init_vals, reduce)


def _forall(build: Builder, op: scf.ForallOp) -> Values:
    body = op.region.block
    *_, end = body.ops
    Rewriter.erase_op(end)
    return _nest(build, body, list(zip(*op.mixed_bounds)), [], lambda b, carried: [])


def _execute_region(build: Builder, op: scf.ExecuteRegionOp) -> Values | None:
    """Replace a region that runs once by its operations; one with branches stays."""
    if len(op.region.blocks) > 1:
        return None
    return _move_and_end(op.region.block, build)


def _index_switch(build: Builder, op: scf.IndexSwitchOp) -> Values:
    """Replace a switch by nested conditionals, the first case outermost."""
    tests = [build.compare("eq", op.arg, number) for number in base.ints_of(op.cases)]
    regions = [Region(region.detach_block(0)) for region in op.case_regions]
    rest = Region(op.default_region.detach_block(0))
    for test, region in reversed(list(zip(tests, regions))):
        choice = scf.IfOp(test, op.result_types, region, rest, location=op.location)
        end = scf.YieldOp(*choice.results)
        rest = Region(Block([choice, end]))
    return _move_and_end(rest.block, build)


def _assert(build: Builder, op: cf.AssertOp) -> Values:
    text = op.msg.data.replace("{", "{{").replace("}", "}}")
    build.add(AssertOp(op.arg, template=text))
    return []


def _move(source: Block, build: Builder) -> None:
    for each in list(source.ops):
        each.detach()
        build.add(each)


def _move_and_end(source: Block, build: Builder) -> Values:
    """Move all operations but the terminator; return the terminator's operands."""
    *_, end = source.ops
    values = list(end.operands)
    Rewriter.erase_op(end)
    _move(source, build)
    return values


_CONTROL_FLOW: dict[type[Operation], Rule] = {
    scf.ParallelOp: _parallel,
    scf.ForallOp: _forall,
    scf.ExecuteRegionOp: _execute_region,
    scf.IndexSwitchOp: _index_switch,
    cf.AssertOp: _assert,
}


def _get_global(b: Builder, op: memref.GetGlobalOp) -> Values:
    wanted = op.symbol.root_reference
    *_, top = base.around(op, Operation)
    known = base.operations_in(top, memref.GlobalOp)
    named = [each for each in known if each.sym_name == wanted]
    value = named[0].initial_value if named else None
    type_ = base.memref_type(op.result)
    if not named or named[0].constant is None or not base.is_dense(value):
        raise VerifyException(f"`{wanted.data}` is no constant of the module")
    full = VectorType(type_.element_type, type_.get_shape())
    constant = b.insert(arith.ConstantOp(with_type(value, full), full))
    memory = b.insert(memref.AllocaOp(type_))
    zero = b.constant(0, IndexType())
    rank = type_.get_num_dims()
    b.add(vector.TransferWriteOp(constant, memory, [zero] * rank))
    return [memory]


def _transposing(b: Builder, op: LoadTileOp) -> Values | None:
    if op.permutation is None:
        return None
    load = LoadTileOp(op.tile, op.padding, attributes=dict(op.attributes))
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        if name in op.properties:
            load.properties[name] = op.properties[name]
    return [b.insert(TileTransposeOp(b.insert(load)))]


_RULES: dict[type[Operation], Rule] = {
    memref.GetGlobalOp: _get_global,
    LoadTileOp: _transposing,
    **batches.RULES,
    **numbers.RULES,
    xsmm.BrgemmOp: _brgemm,
    xsmm.TileConfigOp: lambda b, op: [],  # backends choose micro-kernels of their own
    func.CallOp: _call,
    **products.RULES,
}


class LegalizeTextPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        legalize_control_flow(op)
        legalize_contractions(op)
        apply_rules(op, _RULES)
        for each in [*op.walk(reverse=True)]:
            if isinstance(each, GlobalOp) or is_unread(each):
                Rewriter.erase_op(each)
