// Attention at workgroup level with running maximum and sum; maps on loops' values.
// launch: k (1) (4, 1, 1)
// Q: 64x32 f16 integers
// K: 64x32 f16 integers
// V: 64x32 f16 integers
// O: 64x32 f32 zeros
// tolerance: 2e-3
// expect O = attention(Q, K, V, 0.125)
#q = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 32]>
#kt = #xetile.wg_map<sg_layout = [4, 1], sg_data = [32, 32]>
#kl = #xetile.wg_map<sg_layout = [1, 4], sg_data = [32, 32]>
#s = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 32]>
#c = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 1]>
gpu.module @w {
  gpu.func @k(%Q: memref<64x32xf16>, %K: memref<64x32xf16>, %V: memref<64x32xf16>, %O: memref<64x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %scale = arith.constant {map = #s} dense<1.250000e-01> : vector<64x32xf32>
    %m0 = arith.constant {map = #c} dense<-1.0e+30> : vector<64x1xf32>
    %l0 = arith.constant {map = #c} dense<0.0> : vector<64x1xf32>
    %o0 = arith.constant {map = #q} dense<0.0> : vector<64x32xf32>
    %tq = xetile.init_tile %Q[0, 0] : memref<64x32xf16> -> !xetile.tile<64x32xf16, #q>
    %q = xetile.load_tile %tq : !xetile.tile<64x32xf16, #q> -> vector<64x32xf16>
    %r:3 = scf.for %j = %c0 to %c64 step %c32 iter_args(%m = %m0, %l = %l0, %o = %o0) -> (vector<64x1xf32>, vector<64x1xf32>, vector<64x32xf32>) {
      %tk = xetile.init_tile %K[%j, 0] : memref<64x32xf16> -> !xetile.tile<32x32xf16, #kl>
      %tv = xetile.init_tile %V[%j, 0] : memref<64x32xf16> -> !xetile.tile<32x32xf16, #kt>
      %k = xetile.load_tile %tk : !xetile.tile<32x32xf16, #kl> -> vector<32x32xf16>
      %t = xetile.transpose %k, [1, 0] {map = #kt} : vector<32x32xf16> -> vector<32x32xf16>
      %p0 = xetile.tile_mma %q, %t {wg_map_a = #q, wg_map_b = #kt, wg_map_c = #s} : vector<64x32xf16>, vector<32x32xf16> -> vector<64x32xf32>
      %p1 = arith.mulf %p0, %scale {map = #s} : vector<64x32xf32>
      %mx = xetile.reduction <maximumf>, %p1 [1] {map1 = #s, map2 = #c} : vector<64x32xf32> -> vector<64x1xf32>
      %mn = arith.maximumf %m, %mx {map = #c} : vector<64x1xf32>
      %mb = xetile.broadcast %mn [1] {map1 = #c, map2 = #s} : vector<64x1xf32> -> vector<64x32xf32>
      %d = arith.subf %p1, %mb {map = #s} : vector<64x32xf32>
      %p = math.exp %d {map = #s} : vector<64x32xf32>
      %dm = arith.subf %m, %mn {map = #c} : vector<64x1xf32>
      %al = math.exp %dm {map = #c} : vector<64x1xf32>
      %ps = xetile.reduction <add>, %p [1] {map1 = #s, map2 = #c} : vector<64x32xf32> -> vector<64x1xf32>
      %la = arith.mulf %l, %al {map = #c} : vector<64x1xf32>
      %ln = arith.addf %la, %ps {map = #c} : vector<64x1xf32>
      %ab = xetile.broadcast %al [1] {map1 = #c, map2 = #q} : vector<64x1xf32> -> vector<64x32xf32>
      %oa = arith.mulf %o, %ab {map = #q} : vector<64x32xf32>
      %ph = arith.truncf %p {map = #s} : vector<64x32xf32> to vector<64x32xf16>
      %v = xetile.load_tile %tv : !xetile.tile<32x32xf16, #kt> -> vector<32x32xf16>
      %on = xetile.tile_mma %ph, %v, %oa {wg_map_a = #s, wg_map_b = #kt, wg_map_c = #q} : vector<64x32xf16>, vector<32x32xf16>, vector<64x32xf32> -> vector<64x32xf32>
      scf.yield %mn, %ln, %on : vector<64x1xf32>, vector<64x1xf32>, vector<64x32xf32>
    }
    %lb = xetile.broadcast %r#1 [1] {map1 = #c, map2 = #q} : vector<64x1xf32> -> vector<64x32xf32>
    %out = arith.divf %r#2, %lb {map = #q} : vector<64x32xf32>
    %to = xetile.init_tile %O[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #q>
    xetile.store_tile %out, %to : vector<64x32xf32>, !xetile.tile<64x32xf32, #q>
    gpu.return
  }
}
