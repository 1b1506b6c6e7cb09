// bf16 in, bf16 out; the sum is widened by hand between.
// launch: k (2) (1)
// A: 32x32 bf16 integers
// B: 32x32 bf16 integers
// C: 32x32 bf16 zeros
// tolerance: 0.004
// expect C = A @ B
gpu.module @m {
  gpu.func @k(%a: memref<32x32xbf16>, %b: memref<32x32xbf16>, %c: memref<32x32xbf16>) kernel {
    %id = gpu.block_id x
    %c16 = arith.constant 16 : index
    %row = arith.muli %id, %c16 overflow<nsw> : index
    %ta = xetile.init_tile %a[%row, 0] : memref<32x32xbf16> -> !xetile.tile<16x32xbf16>
    %tb = xetile.init_tile %b[0, 0] : memref<32x32xbf16> -> !xetile.tile<32x32xbf16>
    %va = xetile.load_tile %ta : !xetile.tile<16x32xbf16> -> vector<16x32xbf16>
    %vb = xetile.load_tile %tb : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
    %d = xetile.tile_mma %va, %vb : vector<16x32xbf16>, vector<32x32xbf16> -> vector<16x32xf32>
    %e = arith.truncf %d : vector<16x32xf32> to vector<16x32xbf16>
    %tc = xetile.init_tile %c[%row, 0] : memref<32x32xbf16> -> !xetile.tile<16x32xbf16>
    xetile.store_tile %e, %tc : vector<16x32xbf16>, !xetile.tile<16x32xbf16>
    gpu.return
  }
}
