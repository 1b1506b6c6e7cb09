// Broadcasts of rows, columns, scalars and vectors of rank 1, in every spelling.
// launch: k (1) (1)
// r: 1x32 f32 integers
// c: 16x1 f32 integers
// v: 32 f32 integers
// s: 2.5
// O: 16x32 f32 zeros
// expect O = r + c + v + s + r * c
gpu.module @m {
  gpu.func @k(%r: memref<1x32xf32>, %c: memref<16x1xf32>, %v: memref<32xf32>, %s: f32, %O: memref<16x32xf32>) kernel {
    %tr = xetile.init_tile %r[0, 0] : memref<1x32xf32> -> !xetile.tile<1x32xf32>
    %tc = xetile.init_tile %c[0, 0] : memref<16x1xf32> -> !xetile.tile<16x1xf32>
    %vr = xetile.load_tile %tr : !xetile.tile<1x32xf32> -> vector<1x32xf32>
    %vc = xetile.load_tile %tc : !xetile.tile<16x1xf32> -> vector<16x1xf32>
    %rb = xetile.broadcast %vr [0] : vector<1x32xf32> -> vector<16x32xf32>
    %cb = xetile.tile_broadcast %vc [1] : vector<16x1xf32> -> vector<16x32xf32>
    %cv = vector.broadcast %vc : vector<16x1xf32> to vector<16x32xf32>
    %rv = vector.broadcast %vr : vector<1x32xf32> to vector<16x32xf32>
    %c0 = arith.constant 0 : index
    %l = vector.load %v[%c0] : memref<32xf32>, vector<32xf32>
    %lb = vector.broadcast %l : vector<32xf32> to vector<16x32xf32>
    %sb = vector.broadcast %s : f32 to vector<16x32xf32>
    %a = arith.addf %rb, %cb : vector<16x32xf32>
    %b = arith.addf %a, %lb : vector<16x32xf32>
    %d = arith.addf %b, %sb : vector<16x32xf32>
    %e = math.fma %rv, %cv, %d : vector<16x32xf32>
    %to = xetile.init_tile %O[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
    xetile.store_tile %e, %to : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }
}
