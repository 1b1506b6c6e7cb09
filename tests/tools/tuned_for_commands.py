"""A kernel with configs that commands are given."""

import xetl
from xetl import xetile
from xetl.xetile import constexpr


@xetl.autotune(BM=[8, 16], rep=1)
@xetile.kernel
def tuned(X, double, BM: constexpr):
    tile = xetile.init_tile(X, [xetile.program_id(0) * BM, 0], (BM, 16))
    xetile.store_tile(xetile.load_tile(tile) * double, tile)
