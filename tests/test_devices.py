"""The tables of devices keep the rules of the hardware (docs/design/0004)."""

import pytest

from xetl.devices import (
    DEVICES,
    LOAD_BYTES,
    ROW_BYTES,
    STORE_BYTES,
    Access,
    Device,
    find_device,
)
from xetl.errors import LaunchError

MOST_BYTES: dict[Access, int] = {
    "load": LOAD_BYTES,
    "store": STORE_BYTES,
    "prefetch": LOAD_BYTES,
    "transform": LOAD_BYTES,
    "transpose": LOAD_BYTES,
}
each_device = pytest.mark.parametrize("device", DEVICES.values(), ids=lambda d: d.name)
each_access = pytest.mark.parametrize("access", MOST_BYTES)


@each_device
@each_access
def test_messages_fit_rows_and_registers(device: Device, access: Access) -> None:
    for bits, messages in device.messages[access].items():
        for rows, columns in messages.blocks():
            for count in messages.counts[columns]:
                row = columns * count * bits // 8
                assert row <= ROW_BYTES
                assert rows * row <= MOST_BYTES[access]
                # Whole units of 32 bits a row.
                assert row % 4 == 0


@each_device
@each_access
def test_rows_are_powers_of_two(device: Device, access: Access) -> None:
    for messages in device.messages[access].values():
        for number in (*messages.rows, *messages.widths):
            assert number.bit_count() == 1


@each_device
def test_a_store_is_of_one_block_that_can_be_loaded(device: Device) -> None:
    for bits, messages in device.messages["store"].items():
        load, prefetch = (device.blocks_of(a, bits) for a in ("load", "prefetch"))
        for block in messages.blocks():
            assert messages.counts[block[1]] == (1,)
            assert load.allows(block)
            assert prefetch.allows(block)


@each_device
def test_special_loads_have_their_own_widths(device: Device) -> None:
    assert set(device.messages["transform"]) == {8, 16}
    assert set(device.messages["transpose"]) == {32, 64}
    for bits, messages in device.messages["transform"].items():
        # A group of rows fills 32 bits.
        assert all(rows * bits % 32 == 0 for rows in messages.rows)
    assert device.blocks_of("transpose", 64).rows == (8,)
    assert not list(device.blocks_of("transpose", 16).blocks())


@each_device
@pytest.mark.parametrize(
    ("name", "bits", "depth"),
    [("f16", 16, 16), ("bf16", 16, 16), ("tf32", 32, 8), ("i8", 8, 32)],
)
def test_blocks_of_a_product_can_be_loaded_and_stored(
    device: Device, name: str, bits: int, depth: int
) -> None:
    unit = device.matrix
    assert unit.depth_bits // bits == depth
    assert unit.columns == device.subgroup_size
    load = device.blocks_of("load", bits)
    assert all(load.allows((rows, depth)) for rows in unit.rows)
    assert load.allows((depth, unit.columns))
    if bits < 32:
        assert device.blocks_of("transform", bits).allows((depth, unit.columns))
    wide = device.blocks_of("store", 32)
    assert {"f32", "i32"} & set(unit.results[name])
    assert all(wide.allows((rows, unit.columns)) for rows in unit.rows)


@each_device
def test_shared_memory_takes_whole_units(device: Device) -> None:
    assert device.blocks_of("load", 8, shared=True).widths == (4, 8, 16, 32, 64)
    assert device.blocks_of("store", 16, shared=True).widths == (2, 4, 8, 16, 32, 64)
    assert 1 in device.blocks_of("store", 32, shared=True).widths


def test_bmg_transforms_wider_blocks_than_pvc() -> None:
    pvc, bmg = find_device("pvc"), find_device("bmg")
    assert bmg.blocks_of("transform", 16).allows((16, 32))
    assert not pvc.blocks_of("transform", 16).allows((16, 32))
    assert pvc.core_memory_bytes == 2 * bmg.core_memory_bytes == 512 * 1024
    assert pvc.register_bytes == bmg.register_bytes == 64


def test_an_unknown_device_is_an_error_that_names_a_near_one() -> None:
    with pytest.raises(LaunchError, match=r"no device called `pvx`") as caught:
        find_device("pvx")
    assert caught.value.help == "did you mean `pvc`?"
    assert caught.value.code == "X0811"


def test_the_emulated_device_does_what_pvc_does() -> None:
    pvc, emulated = find_device("pvc"), [d for d in DEVICES.values() if d.emulated]
    assert [d.name for d in emulated] == ["opencl", "opencl_fp32"]
    assert [d.has_fp64 for d in emulated] == [True, False]
    for each in emulated:
        assert each.messages == pvc.messages
        assert (each.matrix, each.shared) == (pvc.matrix, pvc.shared)
