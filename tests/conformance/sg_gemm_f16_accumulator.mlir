// f16 sums: the accumulator and C are f16, rounded once a product.
// launch: k (1) (1)
// A: 16x64 f16 integers
// B: 64x32 f16 integers
// C: 16x32 f16 integers
// expect C = C + A @ B
module {
  gpu.module @k {
    gpu.func @k(%a: memref<16x64xf16>, %b: memref<64x32xf16>, %c: memref<16x32xf16>) kernel {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %tc = xetile.init_tile %c[0, 0] : memref<16x32xf16> -> !xetile.tile<16x32xf16>
      %vc = xetile.load_tile %tc : !xetile.tile<16x32xf16> -> vector<16x32xf16>
      %r = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %vc) -> vector<16x32xf16> {
        %ta = xetile.init_tile %a[0, %k] : memref<16x64xf16> -> !xetile.tile<16x16xf16>
        %tb = xetile.init_tile %b[%k, 0] : memref<64x32xf16> -> !xetile.tile<16x32xf16>
        %va = xetile.load_tile %ta : !xetile.tile<16x16xf16> -> vector<16x16xf16>
        %vb = xetile.load_tile %tb : !xetile.tile<16x32xf16> -> vector<16x32xf16>
        %n = xetile.tile_mma %va, %vb, %acc : vector<16x16xf16>, vector<16x32xf16>, vector<16x32xf16> -> vector<16x32xf16>
        scf.yield %n : vector<16x32xf16>
      }
      xetile.store_tile %r, %tc : vector<16x32xf16>, !xetile.tile<16x32xf16>
      return
    }
  }
}
