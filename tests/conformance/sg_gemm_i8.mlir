// Bytes with sign, sums in i32.
// launch: k (2, 1, 1) (1, 1, 1)
// A: 32x64 i8 integers
// B: 64x32 i8 integers
// C: 32x32 i32 zeros
// expect C = A @ B
gpu.module @m {
  gpu.func @k(%A: memref<32x64xi8>, %B: memref<64x32xi8>, %C: memref<32x32xi32>) kernel attributes {VectorComputeFunctionINTEL} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %m = arith.muli %x, %c16 : index
    %zero = arith.constant dense<0> : vector<16x32xi32>
    %ta = xetile.init_tile %A[%m, %c0] : memref<32x64xi8> -> !xetile.tile<16x32xi8>
    %tb = xetile.init_tile %B[%c0, %c0] : memref<64x32xi8> -> !xetile.tile<32x32xi8>
    %r:3 = scf.for %k = %c0 to %c64 step %c32 iter_args(%s = %zero, %a = %ta, %b = %tb) -> (vector<16x32xi32>, !xetile.tile<16x32xi8>, !xetile.tile<32x32xi8>) {
      %va = xetile.load_tile %a : !xetile.tile<16x32xi8> -> vector<16x32xi8>
      %vb = xetile.load_tile %b : !xetile.tile<32x32xi8> -> vector<32x32xi8>
      %n = xetile.tile_mma %va, %vb, %s : vector<16x32xi8>, vector<32x32xi8>, vector<16x32xi32> -> vector<16x32xi32>
      %na = xetile.update_tile_offset %a, [%c0, %c32] : !xetile.tile<16x32xi8>
      %nb = xetile.update_tile_offset %b, [%c32, %c0] : !xetile.tile<32x32xi8>
      scf.yield %n, %na, %nb : vector<16x32xi32>, !xetile.tile<16x32xi8>, !xetile.tile<32x32xi8>
    }
    %tc = xetile.init_tile %C[%m, %c0] : memref<32x32xi32> -> !xetile.tile<16x32xi32>
    xetile.store_tile %r#0, %tc : vector<16x32xi32>, !xetile.tile<16x32xi32>
    gpu.return
  }
}
