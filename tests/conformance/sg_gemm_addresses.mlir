// Matrices behind 64-bit addresses, sizes from the arguments.
// launch: k (2) (1)
// pa: address of A
// pb: address of B
// A: 32x16 f32 integers
// B: 16x16 f32 integers
// C: 32x16 f32 zeros
// rows: 32
// expect C = A @ B
gpu.module @m {
  gpu.func @k(%pa: i64, %pb: i64, %A: memref<32x16xf32>, %B: memref<16x16xf32>, %C: memref<32x16xf32>, %rows: i32) kernel {
    %c16 = arith.constant 16 : index
    %c1 = arith.constant 1 : index
    %h = arith.index_cast %rows : i32 to index
    %x = gpu.block_id x
    %m = arith.muli %x, %c16 : index
    %ta = xetile.init_tile %pa[%m, 0], [%h, %c16], [%c16, %c1] : i64 -> !xetile.tile<16x16xf32>
    %tb = xetile.init_tile %pb[0, 0], [16, 16], [16, 1] : i64 -> !xetile.tile<16x16xf32>
    %a = xetile.load_tile %ta : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %b = xetile.load_tile %tb : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %d = xetile.tile_mma %a, %b : vector<16x16xf32>, vector<16x16xf32> -> vector<16x16xf32>
    %tc = xetile.init_tile %C[%m, 0] : memref<32x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}
