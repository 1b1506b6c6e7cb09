"""Values that move between subgroups are all there, and nobody races."""

from itertools import product
from math import prod

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import EXTENTS, SUBGROUPS, is_first_owner, layouts, moved
from xdsl.dialects.builtin import i8

from xetl.dialects.base import element_type
from xetl.dialects.reduction_kinds import FLOAT_KINDS, INTEGER_KINDS
from xetl.dialects.upstream import gpu, memref
from xetl.dialects.xetile import LoadTileOp, StoreTileOp
from xetl.language.distribution import Layout, origins, rounds, whole
from xetl.transforms.distribute_to_subgroups.exchange import (
    convert_layout,
    reduce_across,
    share,
)

DTYPES = [
    *(np.float32, np.float64, np.float16, ml_dtypes.bfloat16),
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint64),
]
some = settings(max_examples=50)
shapes = st.tuples(st.sampled_from(EXTENTS), st.sampled_from(EXTENTS))


def numbers(shape, dtype=np.float32, seed=0):
    """Bits of all kinds, NaN and negative zeros as well, each element another one."""
    size = np.dtype(dtype).itemsize
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0, 256, (*shape, size), np.uint8).view(dtype).reshape(shape)


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8)


def converted(x, source, target, **options):
    """``x`` from one layout to another; and the kernel."""

    def move(team, parts):
        element = element_type(parts[0].type)
        return convert_layout(team, parts, x.shape, element, source, target)

    return moved(x, x, source, target, move, **options)


def count(module, kind):
    return sum(isinstance(op, kind) for op in module.walk())


# Layouts ----------------------------------------------------------------------------


@some
@given(data=st.data(), shape=shapes, subgroups=st.sampled_from(SUBGROUPS))
@pytest.mark.parametrize(
    "chunks", [1, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 8))]
)
def test_any_layout_to_any_other(chunks, data, shape, subgroups):
    source = data.draw(layouts(shape, subgroups))
    target = data.draw(layouts(shape, subgroups))
    x = numbers(shape)
    slm_limit = max(x.nbytes // chunks, x.itemsize)
    y, module = converted(x, source, target, slm_limit=slm_limit)
    assert np.array_equal(bits(x), bits(y))
    for op in module.walk():
        if isinstance(op, memref.AllocOp):
            assert op.result.type.get_shape()[0] <= slm_limit
            assert op.result.type.element_type == i8


@pytest.mark.parametrize("slm_limit", [65536, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_element_types(dtype, slm_limit):
    source, target = Layout((2, 2), (4, 8)), Layout((4, 1), (1, 16))
    x = numbers((8, 16), dtype)
    y, _ = converted(x, source, target, slm_limit=slm_limit)
    assert np.array_equal(bits(x), bits(y))


def test_the_example_of_the_rfc():
    """256x256 of f32 is 256 KiB: in four rounds through 64."""
    x = numbers((256, 256))
    source, target = Layout((8, 4), (32, 64)), Layout((32, 1), (8, 256))
    y, module = converted(x, source, target)
    assert np.array_equal(bits(x), bits(y))
    (scratch,) = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    assert scratch.result.type.get_shape() == (65536,)
    assert count(module, gpu.BarrierOp) == 2 * 4
    y, module = converted(x, source, target, slm_limit=1 << 20)
    assert count(module, gpu.BarrierOp) == 2


@pytest.mark.parametrize(
    ("shape", "source", "target"),
    [
        # All have everything, in one part or in four.
        ((16, 16), whole((16, 16), (1, 4)), Layout((2, 2), (16, 16))),
        # Ids along the other dimension, where there is one only.
        ((16, 8), Layout((4, 1), (4, 8)), Layout((4, 1), (4, 8), order=(0, 1))),
        # Two rounds that are neighbours become one part, and one becomes two.
        ((16, 16), Layout((1, 4), (8, 4)), Layout((1, 4), (16, 4))),
        ((16, 16), Layout((1, 4), (16, 4)), Layout((1, 4), (4, 4))),
        ((16, 16), Layout((1, 4), (16, 4)), Layout((1, 4), (16, 4), order=(0, 1))),
    ],
)
def test_what_stays_in_registers(shape, source, target):
    x = numbers(shape)
    y, module = converted(x, source, target)
    assert np.array_equal(bits(x), bits(y))
    assert count(module, gpu.BarrierOp) == 0
    assert count(module, memref.AllocOp) == 0


def test_the_other_way_to_count_needs_memory():
    x = numbers((16, 16))
    source = Layout((2, 2), (8, 8))
    y, module = converted(x, source, Layout((2, 2), (8, 8), order=(0, 1)))
    assert np.array_equal(bits(x), bits(y))
    assert count(module, gpu.BarrierOp) == 2


def test_only_one_owner_stores():
    """Eight rows of subgroups share a row of a vector; the race check sees each."""
    x = numbers((1, 32))
    y, module = converted(x, Layout((8, 4), (1, 8)), Layout((1, 32), (1, 1)))
    assert np.array_equal(bits(x), bits(y))
    assert count(module, StoreTileOp) == 2


# Sharing ----------------------------------------------------------------------------


@pytest.mark.parametrize("slm_limit", [65536, 32])
@pytest.mark.parametrize(
    "layout",
    [
        *(whole((4, 8), (2, 2)), Layout((4, 2), (2, 4)), Layout((1, 8), (4, 2))),
        *(Layout((4, 2), (2, 2), order=(0, 1)), Layout((2, 2), (2, 2))),
    ],
)
def test_all_get_what_the_first_owner_has(layout, slm_limit):
    shape, total = (4, 8), layout.subgroups
    parts = prod(rounds(shape, layout))
    # The parts of each subgroup lie in rows of their own, and are all different.
    down, along = layout.sg_data
    own = Layout((total, 1), layout.sg_data)
    x = numbers((total * down, parts * along))
    blocks = x.reshape(total, down, parts, along).swapaxes(1, 2)
    firsts = {
        at: blocks[sg][number]
        for sg in range(total)
        for number, at in enumerate(origins(shape, layout, sg))
        if is_first_owner(shape, layout, sg)
    }
    y, _ = moved(
        *(x, x, own, own),
        lambda team, parts: share(team, parts, shape, layout),
        slm_limit=slm_limit,
    )
    found = y.reshape(total, down, parts, along).swapaxes(1, 2)
    for sg in range(total):
        for number, at in enumerate(origins(shape, layout, sg)):
            assert np.array_equal(bits(found[sg][number]), bits(firsts[at]))


def test_nothing_is_done_where_nothing_is_shared():
    layout = Layout((2, 2), (2, 4))
    x = numbers((4, 8))
    _, module = moved(x, x, layout, layout, lambda t, p: share(t, p, (4, 8), layout))
    assert count(module, gpu.BarrierOp) == 0


# Reductions -------------------------------------------------------------------------

KINDS = {
    "add": np.sum,
    "mul": np.prod,
    "minsi": np.min,
    "maxsi": np.max,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
    "maximumf": np.max,
    "minimumf": np.min,
}


def reduced(x, kind, dims, source, target, **options):
    shape = [1 if dim in dims else n for dim, n in enumerate(x.shape)]

    def move(team, parts):
        return reduce_across(team, kind, parts, x.shape, source, dims, target)

    return moved(x, np.zeros(shape, x.dtype), source, target, move, **options)


def wanted(x, kind, dims):
    found = x
    for dim in dims:
        found = KINDS[kind](found, axis=dim, keepdims=True)
    return found


@some
@given(data=st.data(), shape=shapes, subgroups=st.sampled_from(SUBGROUPS))
@pytest.mark.parametrize("chunks", [1, 5])
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_any_reduction(dims, chunks, data, shape, subgroups):
    kind = data.draw(st.sampled_from(["add", "mul", "minsi", "maxsi", "and", "xor"]))
    left = tuple(1 if dim in dims else n for dim, n in enumerate(shape))
    source = data.draw(layouts(shape, subgroups))
    target = data.draw(layouts(left, subgroups))
    x = numbers(shape, np.int64)
    slm_limit = max(x.nbytes // chunks, x.itemsize)
    y, _ = reduced(x, kind, dims, source, target, slm_limit=slm_limit)
    with np.errstate(over="ignore"):
        assert np.array_equal(y, wanted(x, kind, dims))


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        *product([np.int8, np.int32], sorted({*KINDS} & {*INTEGER_KINDS})),
        *product(
            [np.float16, np.float32, np.float64], sorted({*KINDS} & {*FLOAT_KINDS})
        ),
    ],
)
def test_all_kinds(dtype, kind):
    x = np.random.default_rng(3).integers(1, 3, (8, 16)).astype(dtype)
    source, target = Layout((2, 2), (2, 4)), Layout((4, 1), (2, 1))
    y, _ = reduced(x, kind, (1,), source, target)
    wide = np.float64 if np.issubdtype(dtype, np.floating) else np.int64
    truth = wanted(x.astype(wide), kind, (1,))
    assert np.array_equal(y, truth.astype(dtype))


def test_only_partial_results_move():
    """Four columns of partial sums of 256x256 are 4 KiB, in one round."""
    x = np.random.default_rng(5).integers(-4, 5, (256, 256)).astype(np.float32)
    source, target = Layout((8, 4), (32, 64)), Layout((32, 1), (8, 1))
    y, module = reduced(x, "add", (1,), source, target)
    assert np.array_equal(y, x.sum(1, keepdims=True))
    (scratch,) = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    assert scratch.result.type.get_shape() == (4096,)
    assert count(module, gpu.BarrierOp) == 2
    assert count(module, LoadTileOp) == 2


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_sums_are_rounded_once(dtype):
    x = np.random.default_rng(7).standard_normal((16, 64)).astype(dtype)
    source, target = Layout((2, 4), (4, 8)), Layout((8, 1), (2, 1))
    y, _ = reduced(x, "add", (1,), source, target)
    exact = x.astype(np.float64).sum(1, keepdims=True)
    # Sums in f32 are far more exact than half a unit of the narrow type.
    assert np.array_equal(y, exact.astype(np.float32).astype(dtype))
