"""Runs of the kernels around one operation, subgroup level."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.seeds.examples import Run, bf16, copies, example, numbers, unset, wide

# First RFC --------------------------------------------------------------------------


@example("first_rfc")
def init_tile_static() -> Run:
    base = bf16(128, 128)
    return copies(base, base[24:32, 40:56], 24, 40)


@example("first_rfc")
def init_tile_dynamic() -> Run:
    base = bf16(128, 128)
    return copies(base, base[24:32, 40:56], 24, 40, 128, 128, 128, 1)


@example("first_rfc")
def init_tile_address() -> Run:
    base, out = bf16(128, 128), bf16(8, 16)
    arguments = [base.ctypes.data, 24, 40, 128, 128, 128, 1, out]
    return Run(arguments, [(out, wide(base[24:32, 40:56])), (base, wide(base))])


@example("first_rfc")
def load_and_store() -> Run:
    base = bf16(64, 64)
    return copies(base, base)


@example("first_rfc")
def load_transposed() -> Run:
    base = bf16(32, 64)
    return copies(base, base.T)


@example("first_rfc")
def load_transposed_padded() -> Run:
    base = bf16(60, 30)
    return copies(base, np.pad(base, ((0, 4), (0, 2))).T)


@example("first_rfc")
def load_padded() -> Run:
    base = bf16(60, 50)
    return copies(base, np.pad(base, ((0, 4), (0, 14)), constant_values=1))


@example("first_rfc")
def prefetch() -> Run:
    base = bf16(8, 8)
    return copies(base, base)


def products(times: int, start: bool) -> Run:
    a, b = bf16(64, 32), bf16(32, 128)
    c = numbers(64, 128)
    product = times * (wide(a) @ wide(b))
    return Run([a, b, c], [(c, product + wide(c) if start else product)])


@example("first_rfc")
def mma() -> Run:
    return products(1, start=True)


@example("first_rfc")
def mma_without_c() -> Run:
    return products(1, start=False)


@example("first_rfc")
def update() -> Run:
    base = bf16(128, 128)
    out, out2 = unset(base, 64, 64), unset(base, 32, 64)
    left = [(out, wide(base[24:88, 32:96])), (out2, wide(base[16:48, 24:88]))]
    return Run([base, 16, 24, out, out2], left)


@example("first_rfc")
def mapped() -> Run:
    base = numbers(1024, 1024, dtype=np.float16)
    return copies(base, base[256:384, :128], 256)


# Memory -----------------------------------------------------------------------------


@example("memory_operations")
def load_column_major() -> Run:
    base = np.asfortranarray(bf16(128, 128))
    return copies(base, base[8:72, 16:48], 8, 16)


@example("memory_operations")
def store_column_major() -> Run:
    source, base = bf16(64, 32), np.asfortranarray(bf16(128, 128))
    expected = wide(base)
    expected[8:72, 16:48] = source
    return Run([source, base, 8, 16], [(base, expected)])


@example("memory_operations")
def table_load() -> Run:
    base = bf16(60, 30)
    return copies(base, np.pad(base, ((0, 4), (0, 2))))


@example("memory_operations")
def prefetch__locality() -> Run:
    base = bf16(8, 32)
    return copies(base, base)


@example("memory_operations")
def atomic() -> Run:
    base, by = bf16(8, 16), bf16(8, 16, seed=1)
    out, out2 = unset(base), unset(base)
    start, step = wide(base), wide(by)
    left = [(base, start + 2 * step), (out, start), (out2, start + step)]
    return Run([base, by, out, out2], left)


# Values -----------------------------------------------------------------------------


@example("value_operations")
def mma__twice() -> Run:
    return products(2, start=False)


@example("value_operations")
def transpose() -> Run:
    source = numbers(64, 32)
    out, out2 = unset(source, 32, 64), unset(source, 32, 64)
    return Run([source, out, out2], [(out, source.T), (out2, source.T)])


@example("value_operations")
def reduce() -> Run:
    source = numbers(64, 32)
    return copies(source, source.sum(1, keepdims=True))


@example("value_operations")
def broadcast() -> Run:
    source = numbers(1, 32)
    return copies(source, np.repeat(source, 64, 0))


def rows(source: Any, *kinds: Any) -> Run:
    """Each kind combines the rows to one."""
    return copies(source, np.stack([kind(source, 0) for kind in kinds]))


@example("value_operations")
def kinds_of_floats() -> Run:
    source = numbers(8, 16)
    source[source == 0] = 1  # products keep apart from one another
    return rows(source, np.sum, np.prod, np.min, np.max, np.min, np.max)


@example("value_operations")
def kinds_of_integers() -> Run:
    def unsigned(kind: Any) -> Any:
        return lambda v, axis: kind(v.view(np.uint32), axis).view(np.int32)

    bits = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    source = numbers(8, 16, dtype=np.int32) * 3 + 1
    return rows(
        source,
        *(np.sum, np.prod, np.min, unsigned(np.min), np.max, unsigned(np.max)),
        *(kind.reduce for kind in bits),
    )


# Blocks -----------------------------------------------------------------------------


@example("blocked_operations")
def load_and_store__blocked() -> Run:
    base = bf16(128, 128)
    return copies(base, base[8:72, 16:48], 8, 16)


@example("blocked_operations")
def atomic__blocked() -> Run:
    base, by = bf16(64, 64), bf16(64, 64, seed=1)
    out = unset(base)
    return Run([base, by, out], [(base, wide(base) + wide(by)), (out, wide(base))])


@example("blocked_operations")
def mma__blocked() -> Run:
    return products(1, start=True)


@example("blocked_operations")
def reduce__blocked() -> Run:
    source = numbers(64, 64)
    return copies(source, source.sum(1, keepdims=True))


@example("blocked_operations")
def broadcast__blocked() -> Run:
    source = numbers(64, 1)
    return copies(source, np.repeat(source, 64, 1))


@example("blocked_operations")
def pack() -> Run:
    source = numbers(64, 32)
    return copies(source, source)


@example("blocked_operations")
def unpack() -> Run:
    source = numbers(64, 32)
    return copies(source, source)


# Gathers ----------------------------------------------------------------------------


@example("gather_and_scatter")
def gather() -> Run:
    base, out, limit = bf16(768), bf16(1, 256), 200
    expected = np.ones((1, 256))
    expected[0, :limit] = base[: 3 * limit : 3]
    arguments = [base.ctypes.data, out, limit]
    return Run(arguments, [(out, expected), (base, wide(base))])


@example("gather_and_scatter")
def scatter() -> Run:
    source, base, limit = bf16(1, 256), bf16(768), 200
    expected = wide(base)
    expected[: 3 * limit : 3] = source[0, :limit]
    return Run([source, base.ctypes.data, limit], [(base, expected)])
