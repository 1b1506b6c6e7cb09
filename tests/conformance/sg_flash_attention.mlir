// One pass over blocks of K and V with a running maximum and a running sum.
// launch: attention (2) (1)
// Q: 32x32 f16 integers
// K: 64x32 f16 integers
// V: 64x32 f16 integers
// O: 32x32 f32 zeros
// tolerance: 2e-3
// expect O = attention(Q, K, V, 0.125)
gpu.module @flash {
  gpu.func @attention(%Q: memref<32x32xf16>, %K: memref<64x32xf16>, %V: memref<64x32xf16>, %O: memref<32x32xf32>) kernel attributes {VectorComputeFunctionINTEL, spirv.entry_point_abi = #spirv.entry_point_abi<>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %scale = arith.constant dense<1.250000e-01> : vector<16x16xf32>
    %m0 = arith.constant dense<-1.0e+30> : vector<16x1xf32>
    %l0 = arith.constant dense<0.0> : vector<16x1xf32>
    %o0 = arith.constant dense<0.0> : vector<16x32xf32>
    %bx = gpu.block_id x
    %row = arith.muli %bx, %c16 : index
    %tq = xetile.init_tile %Q[%row, 0] : memref<32x32xf16> -> !xetile.tile<16x32xf16>
    %q = xetile.load_tile %tq : !xetile.tile<16x32xf16> -> vector<16x32xf16>
    %tk0 = xetile.init_tile %K[0, 0] : memref<64x32xf16> -> !xetile.tile<16x32xf16>
    %tv0 = xetile.init_tile %V[0, 0] : memref<64x32xf16> -> !xetile.tile<16x32xf16>
    %r:5 = scf.for %j = %c0 to %c64 step %c16 iter_args(%m = %m0, %l = %l0, %o = %o0, %tk = %tk0, %tv = %tv0) -> (vector<16x1xf32>, vector<16x1xf32>, vector<16x32xf32>, !xetile.tile<16x32xf16>, !xetile.tile<16x32xf16>) {
      %k = xetile.load_tile %tk : !xetile.tile<16x32xf16> -> vector<16x32xf16>
      %kt = xetile.transpose %k, [1, 0] : vector<16x32xf16> -> vector<32x16xf16>
      %s = xetile.tile_mma %q, %kt : vector<16x32xf16>, vector<32x16xf16> -> vector<16x16xf32>
      %ss = arith.mulf %s, %scale : vector<16x16xf32>
      %mx = xetile.reduction <maximumf>, %ss [1] : vector<16x16xf32> -> vector<16x1xf32>
      %mn = arith.maximumf %m, %mx : vector<16x1xf32>
      %mb = xetile.broadcast %mn [1] : vector<16x1xf32> -> vector<16x16xf32>
      %d = arith.subf %ss, %mb : vector<16x16xf32>
      %p = math.exp %d : vector<16x16xf32>
      %dm = arith.subf %m, %mn : vector<16x1xf32>
      %alpha = math.exp %dm : vector<16x1xf32>
      %ps = xetile.reduction <add>, %p [1] : vector<16x16xf32> -> vector<16x1xf32>
      %la = arith.mulf %l, %alpha : vector<16x1xf32>
      %ln = arith.addf %la, %ps : vector<16x1xf32>
      %ab = xetile.broadcast %alpha [1] : vector<16x1xf32> -> vector<16x32xf32>
      %oa = arith.mulf %o, %ab : vector<16x32xf32>
      %ph = arith.truncf %p : vector<16x16xf32> to vector<16x16xf16>
      %v = xetile.load_tile %tv : !xetile.tile<16x32xf16> -> vector<16x32xf16>
      %on = xetile.tile_mma %ph, %v, %oa : vector<16x16xf16>, vector<16x32xf16>, vector<16x32xf32> -> vector<16x32xf32>
      %nk = xetile.update_tile_offset %tk, [%c16, %c0] : !xetile.tile<16x32xf16>
      %nv = xetile.update_tile_offset %tv, [%c16, %c0] : !xetile.tile<16x32xf16>
      scf.yield %mn, %ln, %on, %nk, %nv : vector<16x1xf32>, vector<16x1xf32>, vector<16x32xf32>, !xetile.tile<16x32xf16>, !xetile.tile<16x32xf16>
    }
    %lb = xetile.broadcast %r#1 [1] : vector<16x1xf32> -> vector<16x32xf32>
    %out = arith.divf %r#2, %lb : vector<16x32xf32>
    %to = xetile.init_tile %O[%row, 0] : memref<32x32xf32> -> !xetile.tile<16x32xf32>
    xetile.store_tile %out, %to : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }
}
