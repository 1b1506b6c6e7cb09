// At workgroup level each elementwise operation carries a map; a row is broadcast, columns summed.
// launch: k (1) (4, 2, 1)
// A: 64x32 f16 integers
// B: 32x64 f16 integers
// bias: 1x64 f32 integers
// C: 64x64 f32 zeros
// S: 64x1 f32 zeros
// expect C = np.maximum(A @ B + bias, 0)
// expect S = np.maximum(A @ B + bias, 0).sum(1, keepdims=True)
#mc = #xetile.wg_map<sg_layout = [4, 2], sg_data = [16, 32]>
#ma = #xetile.wg_map<sg_layout = [4, 2], sg_data = [16, 32]>
#mb = #xetile.wg_map<sg_layout = [4, 2], sg_data = [32, 32]>
#mrow = #xetile.wg_map<sg_layout = [4, 2], sg_data = [1, 32]>
#mr = #xetile.wg_map<sg_layout = [8, 1], sg_data = [8, 64]>
#ms = #xetile.wg_map<sg_layout = [8, 1], sg_data = [8, 1]>
gpu.module @m {
  gpu.func @k(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %bias: memref<1x64xf32>, %C: memref<64x64xf32>, %S: memref<64x1xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x32xf16> -> !xetile.tile<64x32xf16, #xetile.tile_attr<wg_map = #ma>>
    %tb = xetile.init_tile %B[0, 0] : memref<32x64xf16> -> !xetile.tile<32x64xf16, #xetile.tile_attr<wg_map = #mb>>
    %tr = xetile.init_tile %bias[0, 0] : memref<1x64xf32> -> !xetile.tile<1x64xf32, #xetile.tile_attr<wg_map = #mrow>>
    %a = xetile.load_tile %ta : !xetile.tile<64x32xf16, #xetile.tile_attr<wg_map = #ma>> -> vector<64x32xf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x64xf16, #xetile.tile_attr<wg_map = #mb>> -> vector<32x64xf16>
    %r = xetile.load_tile %tr : !xetile.tile<1x64xf32, #xetile.tile_attr<wg_map = #mrow>> -> vector<1x64xf32>
    %d = xetile.tile_mma %a, %b {wg_map_a = #ma, wg_map_b = #mb, wg_map_c = #mc} : vector<64x32xf16>, vector<32x64xf16> -> vector<64x64xf32>
    %rb = xetile.broadcast %r [0] {map1 = #mrow, map2 = #mc} : vector<1x64xf32> -> vector<64x64xf32>
    %e = arith.addf %d, %rb {map = #mc} : vector<64x64xf32>
    %z = arith.constant {map = #mc} dense<0.0> : vector<64x64xf32>
    %f = arith.maximumf %e, %z {map = #mc} : vector<64x64xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = #mc>>
    xetile.store_tile %f, %tc : vector<64x64xf32>, !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = #mc>>
    %g = xetile.convert_layout %f {wg_map_result = #mr, wg_map_source = #mc} : vector<64x64xf32>
    %s = xetile.reduction <add>, %g [1] {map1 = #mr, map2 = #ms} : vector<64x64xf32> -> vector<64x1xf32>
    %ts = xetile.init_tile %S[0, 0] : memref<64x1xf32> -> !xetile.tile<64x1xf32, #xetile.tile_attr<wg_map = #ms>>
    xetile.store_tile %s, %ts : vector<64x1xf32>, !xetile.tile<64x1xf32, #xetile.tile_attr<wg_map = #ms>>
    gpu.return
  }
}
