"""The cost model: what a map costs decides, and what it gives is legal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xetl.devices import DEVICES, Device
from xetl.language.distribution import Layout, problem_with
from xetl.transforms.propagate_wg_maps.choose import (
    Product,
    choose_product_map,
    choose_value_map,
    owned_shape,
)

extents = st.sampled_from([1, 2, 3, 5, 8, 12, 16, 24, 31, 32, 64, 100, 128, 256])
counts = st.none() | st.integers(1, 32)
bits = st.sampled_from([1, 8, 16, 32, 64])
devices = st.sampled_from(list(DEVICES.values()))
each_device = pytest.mark.parametrize("device", DEVICES.values(), ids=lambda d: d.name)


@given(extents, extents, extents, bits, counts, devices)
def test_maps_of_products_are_legal(
    rows: int,
    columns: int,
    depth: int,
    bits: int,
    subgroups: int | None,
    device: Device,
) -> None:
    product = Product((rows, columns), depth, bits)
    found = choose_product_map(product, subgroups, device)
    assert problem_with((rows, columns), found) is None
    assert subgroups in (None, found.subgroups)


dims = st.sets(st.sampled_from([0, 1]))


@given(extents, extents, bits, counts, dims, dims, devices)
def test_maps_of_values_are_legal(
    rows: int,
    columns: int,
    bits: int,
    subgroups: int | None,
    together: set[int],
    lines: set[int],
    device: Device,
) -> None:
    shape = rows, columns
    found = choose_value_map(shape, bits, subgroups, device, together, lines)
    assert problem_with(shape, found) is None
    assert all(found.sg_data[dim] == shape[dim] for dim in lines)
    assert subgroups in (None, found.subgroups)


@each_device
def test_what_b_is_computed_from_needs_registers(device: Device) -> None:
    """A subgroup has all rows of it, so fewer columns than with other values."""
    shape, kept = (32, 64), 64 * 64 * 4
    free, full = Product(shape, 64, 16), Product(shape, 64, 16, kept=kept)
    some = Product(shape, 64, 16, others=kept)
    columns = [
        owned_shape(shape, choose_product_map(each, 4, device))[1]
        for each in (free, some, full)
    ]
    assert columns[2] < columns[1] <= columns[0]


@each_device
def test_rows_by_their_numbers_need_registers(device: Device) -> None:
    """Each has an address, and is loaded to registers that are no operand yet."""
    product = Product((64, 128), 32, 16)
    gathered = Product((64, 128), 32, 16, is_gathered=True)
    plain, few = (choose_product_map(p, None, device) for p in (product, gathered))
    assert owned_shape((64, 128), few)[0] < owned_shape((64, 128), plain)[0]
    assert few.subgroups > plain.subgroups


@each_device
@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ((256, 256), Layout((8, 4), (32, 64))),
        ((128, 128), Layout((4, 2), (32, 64))),
        ((128, 256), Layout((4, 4), (32, 64))),
        ((64, 64), Layout((2, 1), (32, 64))),
        ((8, 16), Layout((1, 1), (8, 16))),
    ],
)
def test_parts_of_a_product_fit_the_registers(
    shape: tuple[int, int], layout: Layout, device: Device
) -> None:
    assert choose_product_map(Product(shape, 32, 16), None, device) == layout


@each_device
def test_what_follows_a_product_needs_registers_too(device: Device) -> None:
    """Softmax behind a product of 64x64: at 8x64 a subgroup none spills."""
    alone = Product((64, 64), 64, 16)
    followed = Product((64, 64), 64, 16, together=frozenset({1}))
    maps = [choose_product_map(each, None, device) for each in (alone, followed)]
    numbers = [each.subgroups for each in maps]
    assert numbers[0] <= 2
    assert numbers[1] >= 8


@each_device
@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize(("depth", "owned"), [(64, 16), (80, 8), (96, 8), (128, 8)])
def test_a_subgroup_of_attention_owns_whole_rows(
    rows: int, depth: int, owned: int, device: Device
) -> None:
    """[measured] By 64 keys 16 rows spill with heads of 80, and not with 64 (pvc)."""
    scores = Product((rows, 64), depth, 16, together=frozenset({1}), beside=depth)
    found = choose_product_map(scores, None, device)
    assert found == Layout((rows // owned, 1), (owned, 64))


@each_device
@pytest.mark.parametrize("depth", [64, 80, 96, 128])
def test_more_keys_are_not_split(depth: int, device: Device) -> None:
    """[measured] By 128 keys 8 rows of 80 do not spill, and split ones do (pvc)."""
    scores = Product((64, 128), depth, 16, together=frozenset({1}), beside=depth)
    assert choose_product_map(scores, None, device) == Layout((8, 1), (8, 128))


@each_device
def test_sums_of_f64_take_twice_the_registers(device: Device) -> None:
    """Attention, 16 queries, 32 keys, heads of 64: at 4x8 a subgroup none spills."""
    followed = Product((16, 32), 64, 64, together=frozenset({1}), on_matrix_unit=False)
    found = choose_product_map(followed, None, device)
    assert owned_shape((16, 32), found) == (4, 8)


@each_device
def test_the_number_of_subgroups_is_kept(device: Device) -> None:
    found = choose_product_map(Product((64, 64), 32, 16), 8, device)
    assert found.subgroups == 8
    assert owned_shape((64, 64), found) == (16, 32)


@each_device
def test_a_product_goes_with_the_maps_of_its_sides(device: Device) -> None:
    left, right = Layout((2, 4), (64, 32)), Layout((2, 4), (32, 32))
    product = Product((128, 128), 32, 16, left=left, right=right)
    assert choose_product_map(product, 8, device) == Layout((2, 4), (64, 32))


@each_device
def test_rows_that_are_needed_whole_are_not_split(device: Device) -> None:
    product = Product((128, 64), 64, 16, together=frozenset({1}))
    assert choose_product_map(product, 8, device) == Layout((8, 1), (16, 64))


@each_device
@pytest.mark.parametrize(
    ("together", "layout"),
    [({1}, Layout((16, 1), (4, 256))), ({0}, Layout((1, 16), (64, 16)))],
)
def test_a_reduced_dimension_stays_together(
    together: set[int], layout: Layout, device: Device
) -> None:
    assert choose_value_map((64, 256), 32, 16, device, together) == layout


@each_device
def test_scanned_columns_are_whole_and_shared_out(device: Device) -> None:
    found = choose_value_map((64, 256), 32, 16, device, {1}, {0})
    assert found == Layout((1, 16), (64, 16))


@each_device
def test_few_long_rows_are_split_all_the_same(device: Device) -> None:
    found = choose_value_map((1, 8192), 32, 8, device, {1})
    assert found == Layout((1, 8), (1, 1024))
