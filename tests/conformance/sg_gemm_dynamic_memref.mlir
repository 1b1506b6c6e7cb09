// Sizes and strides of matrices come as arguments; edges are ragged.
// launch: k (3, 2) (1)
// A: 40x24 f16 integers
// B: 24x28 f16 integers
// C: 40x28 f32 zeros
// M: 40
// N: 28
// K: 24
// expect C = A @ B
gpu.module @m {
  gpu.func @k(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>, %M: index, %N: index, %K: index) kernel attributes {VectorComputeFunctionINTEL, spirv.entry_point_abi = #spirv.entry_point_abi<>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c16 : index
    %n = arith.muli %y, %c16 : index
    %ta = xetile.init_tile %A[%m, %c0], [%M, %K], [%K, %c1] : memref<?x?xf16> -> !xetile.tile<16x16xf16>
    %tb = xetile.init_tile %B[%c0, %n], [%K, %N], [%N, 1] : memref<?x?xf16> -> !xetile.tile<16x16xf16>
    %tc = xetile.init_tile %C[%m, %n], [%M, %N], [%N, %c1] : memref<?x?xf32> -> !xetile.tile<16x16xf32>
    %zero = arith.constant dense<0.0> : vector<16x16xf32>
    %r:3 = scf.for %k = %c0 to %K step %c16 iter_args(%s = %zero, %a = %ta, %b = %tb) -> (vector<16x16xf32>, !xetile.tile<16x16xf16>, !xetile.tile<16x16xf16>) {
      %va = xetile.load_tile %a : !xetile.tile<16x16xf16> -> vector<16x16xf16>
      %vb = xetile.load_tile %b : !xetile.tile<16x16xf16> -> vector<16x16xf16>
      %d = xetile.tile_mma %va, %vb, %s : vector<16x16xf16>, vector<16x16xf16>, vector<16x16xf32> -> vector<16x16xf32>
      %na = xetile.update_tile_offset %a, [%c0, %c16] : !xetile.tile<16x16xf16>
      %nb = xetile.update_tile_offset %b, [%c16, %c0] : !xetile.tile<16x16xf16>
      scf.yield %d, %na, %nb : vector<16x16xf32>, !xetile.tile<16x16xf16>, !xetile.tile<16x16xf16>
    }
    xetile.store_tile %r#0, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}
