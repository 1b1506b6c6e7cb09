import xetl
from xetl import xetile
from xetl.xetile import Array, Vector, constexpr, f32


@xetile.function
def helper(v: Vector, n: int) -> Vector:
    return v * n


@xetile.kernel
def k(A: Array, C: Array, BM: constexpr = 16) -> None:
    tile = xetile.init_tile(A, [0, 0], (BM, 16))
    xetile.init_tile(tile, [0, 0], (BM, 16))  # E: arg-type
    xetile.load_tile(A)  # E: arg-type
    b = xetile.load_tile(tile, pading=0)  # E: call-arg
    xetile.load_tile(tile).sqroot()  # E: attr-defined
    xetile.zeros((16, 16), dtyp=f32)  # E: call-arg
    xetile.tile_mma(tile, tile)  # E: arg-type
    xetile.store_tile(tile, xetile.load_tile(tile))  # E: arg-type
    tile + 1  # E: operator
    A * 2  # E: operator
    xetile.wg_map([1, 1], [2, 2], order=[1])  # E: call-arg
    helper(tile, 1)  # E: arg-type
    xetile.load_tiles(tile)  # E: attr-defined
    xetile.program_id("x")  # E: arg-type
    helper(b, n=1, k=2)  # E: call-arg
    b.sum(axes=1)  # E: call-arg


k[1]("x")
k.explan()  # E: attr-defined


@xetile.kernel
def unannotated(A, C):
    tile = xetile.init_tile(A, [0, 0], (16, 16))
    xetile.init_tile(tile, [0, 0], (16, 16))  # E: arg-type
    xetile.store_tile(xetile.load_tile(tile, paddin=0), tile)  # E: call-arg
    xetile.load_tile(tile).summ(1)  # E: attr-defined


xetl.confg.backend = "cpu"  # E: attr-defined
xetl.config.bakend = "cpu"  # E: attr-defined
xetl.config.cache = "yes"  # E: assignment
xetl.ops.matmul([1.0], [2.0], activation=1)  # E: arg-type
xetl.ops.matmul([1.0], [2.0], axis=1)  # E: call-arg
xetl.ops.prepack()  # E: call-arg
