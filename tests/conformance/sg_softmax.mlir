// Rows of 64: largest, exp, sum, division; the two spellings of reductions.
// launch: softmax (4) (1)
// A: 32x64 f32 uniform
// B: 32x64 f32 zeros
// tolerance: 1e-6
// expect B = softmax(A)
#map = affine_map<(d0) -> (d0)>
module attributes {gpu.container_module} {
  gpu.module @softmax {
    gpu.func @softmax(%A: memref<32x64xf32>, %B: memref<32x64xf32>) kernel attributes {VectorComputeFunctionINTEL} {
      %c8 = arith.constant 8 : index
      %x = gpu.block_id x
      %m = arith.muli %x, %c8 : index
      %t = xetile.init_tile %A[%m, 0] : memref<32x64xf32> -> !xetile.tile<8x64xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x64xf32> -> vector<8x64xf32>
      %ninf = arith.constant dense<0xFF800000> : vector<8xf32>
      %max = vector.multi_reduction <maximumf>, %v, %ninf [1] : vector<8x64xf32> to vector<8xf32>
      %max2 = vector.shape_cast %max : vector<8xf32> to vector<8x1xf32>
      %maxb = vector.broadcast %max2 : vector<8x1xf32> to vector<8x64xf32>
      %d = arith.subf %v, %maxb fastmath<nnan> : vector<8x64xf32>
      %e = math.exp %d : vector<8x64xf32>
      %s = xetile.reduction <add>, %e [1] : vector<8x64xf32> -> vector<8x1xf32>
      %sb = xetile.broadcast %s [1] : vector<8x1xf32> -> vector<8x64xf32>
      %r = arith.divf %e, %sb : vector<8x64xf32>
      %o = xetile.init_tile %B[%m, 0] : memref<32x64xf32> -> !xetile.tile<8x64xf32>
      xetile.store_tile %r, %o : vector<8x64xf32>, !xetile.tile<8x64xf32>
      gpu.return
    }
  }
}
