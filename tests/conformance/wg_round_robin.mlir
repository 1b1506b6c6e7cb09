// Tiles larger than one round of the subgroups, and tiles smaller: shared data.
// launch: k (1) (2, 2, 1)
// A: 128x64 f32 integers
// r: 1x64 f32 integers
// C: 128x64 f32 zeros
// expect C = A * r
#m = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 16]>
#mr = #xetile.wg_map<sg_layout = [2, 2], sg_data = [1, 16]>
gpu.module @m {
  gpu.func @k(%A: memref<128x64xf32>, %r: memref<1x64xf32>, %C: memref<128x64xf32>) kernel attributes {xetile.level = "workgroup"} {
    %ta = xetile.init_tile %A[0, 0] : memref<128x64xf32> -> !xetile.tile<128x64xf32, #m>
    %tr = xetile.init_tile %r[0, 0] : memref<1x64xf32> -> !xetile.tile<1x64xf32, #mr>
    %tc = xetile.init_tile %C[0, 0] : memref<128x64xf32> -> !xetile.tile<128x64xf32, #m>
    %a = xetile.load_tile %ta : !xetile.tile<128x64xf32, #m> -> vector<128x64xf32>
    %v = xetile.load_tile %tr : !xetile.tile<1x64xf32, #mr> -> vector<1x64xf32>
    %b = vector.broadcast %v {map = #m} : vector<1x64xf32> to vector<128x64xf32>
    %p = arith.mulf %a, %b {map = #m} : vector<128x64xf32>
    xetile.store_tile %p, %tc : vector<128x64xf32>, !xetile.tile<128x64xf32, #m>
    gpu.return
  }
}
