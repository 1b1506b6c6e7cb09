// Softmax at workgroup level: every operation with its map, a row sum by conv_layout.
// launch: k (2) (8, 1, 1)
// A: 64x64 f32 integers
// B: 64x64 f32 zeros
// tolerance: 1e-6
// expect B = softmax(A)
#m = #xetile.wg_map<sg_layout = [8, 1], sg_data = [4, 64]>
#r = #xetile.wg_map<sg_layout = [8, 1], sg_data = [4, 1]>
gpu.module @w {
  gpu.func @k(%A: memref<64x64xf32>, %B: memref<64x64xf32>) kernel attributes {VectorComputeFunctionINTEL, gpu.known_block_size = array<i32: 8, 1, 1>} {
    %c32 = arith.constant 32 : index
    %x = gpu.block_id x
    %row = arith.muli %x, %c32 : index
    %t = xetile.init_tile %A[%row, 0] : memref<64x64xf32> -> !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = #m>>
    %v = xetile.load_tile %t : !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = #m>> -> vector<32x64xf32>
    %mx = xetile.reduction <maximumf>, %v [1] {map1 = #m, map2 = #r} : vector<32x64xf32> -> vector<32x1xf32>
    %mb = xetile.broadcast %mx [1] {map1 = #r, map2 = #m} : vector<32x1xf32> -> vector<32x64xf32>
    %d = arith.subf %v, %mb {map = #m} : vector<32x64xf32>
    %e = math.exp %d {map = #m} : vector<32x64xf32>
    %zero = arith.constant {map = #r} dense<0.0> : vector<32xf32>
    %s1 = vector.multi_reduction <add>, %e, %zero {map = #r} [1] : vector<32x64xf32> to vector<32xf32>
    %s = vector.shape_cast %s1 {map = #r} : vector<32xf32> to vector<32x1xf32>
    %sb = vector.broadcast %s {map = #m} : vector<32x1xf32> to vector<32x64xf32>
    %q = arith.divf %e, %sb {map = #m} : vector<32x64xf32>
    %o = xetile.init_tile %B[%row, 0] : memref<64x64xf32> -> !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = #m>>
    xetile.store_tile %q, %o : vector<32x64xf32>, !xetile.tile<32x64xf32, #xetile.tile_attr<wg_map = #m>>
    gpu.return
  }
}
