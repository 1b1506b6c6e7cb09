"""Runs of the kernels at workgroup level, and of appendix 1 and 2."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.seeds.examples import Run, bf16, copies, example, f16, numbers, unset, wide

# Operations -------------------------------------------------------------------------


@example("workgroup_operations")
def tile() -> Run:
    base = np.asfortranarray(f16(1024, 1024))
    return copies(base, base[256:384, :128], 256)


@example("workgroup_operations")
def mma() -> Run:
    a, b, c = bf16(256, 32), bf16(32, 256), numbers(256, 256)
    return Run([a, b, c], [(c, wide(a) @ wide(b) + wide(c))])


@example("workgroup_operations")
def reduce() -> Run:
    source = numbers(256, 128)
    return copies(source, source.sum(1, keepdims=True))


@example("workgroup_operations")
def broadcast() -> Run:
    source = numbers(256, 1)
    return copies(source, np.repeat(source, 256, 1))


@example("workgroup_operations")
def transpose() -> Run:
    source = numbers(512, 128)
    return copies(source, source.T)


@example("workgroup_operations")
def conv_layout_of_stated_source() -> Run:
    source = numbers(256, 256)
    return copies(source, source)


@example("workgroup_operations")
def conv_layout() -> Run:
    source = numbers(256, 256)
    return copies(source, source)


@example("workgroup_operations")
def table_mma() -> Run:
    a, b, c = bf16(64, 32), bf16(32, 128), numbers(64, 128)
    return Run([a, b, c], [(c, wide(a) @ wide(b) + wide(c))])


@example("workgroup_operations")
def table_values() -> Run:
    source, row = numbers(64, 32), numbers(1, 32)
    turned, sums = unset(source, 32, 64), unset(source, 64, 1)
    filled = unset(source, 64, 32)
    left = [
        (turned, wide(source.T)),
        (sums, wide(source).sum(1, keepdims=True)),
        (filled, np.repeat(wide(row), 64, 0)),
    ]
    return Run([source, turned, sums, row, filled], left)


# Layouts ----------------------------------------------------------------------------


@example("layouts")
def rounds() -> Run:
    base = f16(1024, 1024)
    return copies(base, base[256:384, :128], 256)


@example("layouts")
def dpas() -> Run:
    a, b, c = bf16(256, 32), bf16(32, 256), numbers(256, 256)
    return Run([a, b, c], [(c, wide(a) @ wide(b) + wide(c))])


@example("layouts")
def dpas_of_finer_operands() -> Run:
    a, b, c = bf16(256, 32), bf16(32, 256), numbers(256, 256)
    return Run([a, b, c], [(c, wide(a) @ wide(b))])


@example("layouts")
def convert_to_itself() -> Run:
    source = numbers(256, 256)
    return copies(source, source)


@example("layouts")
def shared_columns() -> Run:
    source = f16(64, 64)
    return copies(source, source)


@example("layouts")
def nested_walk() -> Run:
    source = f16(1, 128)
    return copies(source, source)


# Appendix 1: ragged extents, so that tiles reach over all edges ---------------------

M, N, K = 100, 150, 70


def rounded(product: np.ndarray) -> np.ndarray:
    """What is left of exact sums in a bf16 array."""
    return wide(product.astype(ml_dtypes.bfloat16))


@example("appendix_1")
def row_major() -> Run:
    a, b = bf16(M, K), bf16(K, N)
    c = unset(a, M, N)
    return Run([a, b, c, M, N, K], [(c, rounded(wide(a) @ wide(b)))])


def of_transposed() -> Run:
    a, bt = bf16(M, K), bf16(N, K)
    c = unset(a, M, N)
    return Run([a, bt, c, M, N, K], [(c, rounded(wide(a) @ wide(bt).T))])


@example("appendix_1")
def column_major() -> Run:
    return of_transposed()


@example("appendix_1")
def transposed() -> Run:
    return of_transposed()


@example("appendix_1")
def orders() -> Run:
    by_rows, by_columns = f16(1024, 1024), np.asfortranarray(f16(1024, 1024, seed=1))
    out = unset(by_rows, 192, 32)
    parts = [by_rows[:64, :32], by_rows[:64, :32], by_columns[:64, :32]]
    return Run([by_rows, by_columns, out], [(out, wide(np.concatenate(parts)))])


def of_vectors(b_by_columns: bool) -> Run:
    a, bt = bf16(128, 96), bf16(192, 96)
    c = unset(a, 128, 192)
    b = bt.T if b_by_columns else bt
    return Run([a, b, c], [(c, rounded(wide(a) @ wide(bt).T))])


@example("appendix_1_vector")
def column_major__vectors() -> Run:
    return of_vectors(b_by_columns=True)


@example("appendix_1_vector")
def transposed__vectors() -> Run:
    return of_vectors(b_by_columns=False)


# Appendix 2 -------------------------------------------------------------------------


def product(extent: int) -> Run:
    a, b = f16(extent, extent), f16(extent, extent, seed=1)
    c = unset(numbers(1), extent, extent)
    return Run([a, b, c], [(c, wide(a) @ wide(b))])


@example("appendix_2_1", extent=512)
def test_gemm__2_1(extent: int) -> Run:
    return product(extent)


def row_sums(extent: int) -> Run:
    a, bt = f16(extent, extent), f16(extent, extent, seed=1)
    bias, sums = numbers(extent), unset(numbers(1), extent)
    return Run(
        [a, bt, bias, sums], [(sums, (wide(a) @ wide(bt).T + wide(bias)).sum(1))]
    )


@example("appendix_2_2", extent=512)
def test_gemm__2_2(extent: int) -> Run:
    return row_sums(extent)


OPTIMIZED = (
    "#mp_bt    = #xetile.wg_map<sg_layout=[4,8], sg_data=[64,32]>",
    "#mp_bt    = #xetile.wg_map<sg_layout=[32,1], sg_data=[64,32]>",
)


@example("appendix_2_2", extent=512, edits=(OPTIMIZED,))
def test_gemm__2_3(extent: int) -> Run:
    return row_sums(extent)


def turned() -> Run:
    source = f16(256, 32)
    return copies(source, source.T)


@example("appendix_2_3")
def across_subgroups() -> Run:
    return turned()


@example("appendix_2_3")
def in_registers() -> Run:
    return turned()


@example("appendix_2_4", extent=512)
def test_gemm__2_4(extent: int) -> Run:
    return product(extent)


@example("appendix_2_5", extent=512)
def test_gemm__2_5(extent: int) -> Run:
    return product(extent)
