"""Maps and orders that are not legal: X05xx."""

from xetl import xetile
from xetl.xetile import constexpr, f32

WRONG_MAP = xetile.wg_map(sg_layout=[2, 2], sg_data=[32, 32])


def wrong_map_arguments(X: "f32 2"):
    # CARET: xetile.wg_map([2, 2, 2], [4, 4])
    # CHECK: = help: write sg_layout=[rows, columns]
    m = xetile.wg_map([2, 2, 2], [4, 4])  # ERROR: X0501 `sg_layout` of `wg_map` must be two positive integers, not (2, 2, 2)


def wrong_negative_map(X: "f32 2"):
    m = xetile.wg_map([2, 2], [4, -4])  # ERROR: X0501 `sg_data` of `wg_map` must be two positive integers, not (4, -4)


def wrong_map_for_tile(X: "f32 2"):
    # CARET: wg_map=WRONG_MAP
    # CHECK: 32 must divide 96
    t = xetile.init_tile(X, [0, 0], (96, 64), wg_map=WRONG_MAP)  # ERROR: X0502 this wg_map cannot spread (96, 64): dimension 0 has 96 elements for 2 subgroups of 32


def wrong_map_for_mma(X: "f32 2", WG: constexpr = WRONG_MAP):
    v = xetile.zeros((48, 48), f32)
    w = xetile.tile_mma(v, v, wg_map=WG)  # ERROR: X0502 this wg_map cannot spread (48, 48): dimension 0 has 48 elements for 2 subgroups of 32


def wrong_order(X: "f32 2"):
    # CARET: order=[0, 1]
    # CHECK: dimension 1 has stride 1
    t = xetile.init_tile(X, [0, 0], (4, 4), order=[0, 1])  # ERROR: X0503 `order` is [0, 1], but the strides say [1, 0]


def wrong_order_of_column_major(X: "f32 2 T"):
    t = xetile.init_tile(X, [0, 0], (4, 4), order=[1, 0])  # ERROR: X0503 `order` is [1, 0], but the strides say [0, 1]


def wrong_order_list(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4), order=[1, 1])  # ERROR: X0503 `order` must be [1, 0] or [0, 1], not [1, 1]


def wrong_kind_of_map(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4), wg_map=[2, 2])  # ERROR: X0504 `wg_map` of `init_tile` must be a map


def wrong_subgroup_counts(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (64, 64), wg_map=WRONG_MAP)
    # CARET: wg_map=xetile.wg_map([4, 2], [16, 32])
    # CHECK: the map at line 49 is wg_map(sg_layout=[2, 2], sg_data=[32, 32])
    v = xetile.zeros((64, 64), f32, wg_map=xetile.wg_map([4, 2], [16, 32]))  # ERROR: X0505 this map has 8 subgroups, another one of the kernel 4
