// The parameters of a tile in other orders, nested with and without prefixes; sg_map; xe_map.
// launch: k (1) (4, 1, 1)
// A: 64x32 f16 integers
// B: 32x32 f16 integers
// C: 64x32 f32 integers
// expect C = C + A @ B
#wg = #xetile.wg_map<sg_data = [16, 32], sg_layout = [4, 1]>
#sg = #xetile.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>
#xe = #xetile.xe_map<wg = #wg, sg = #sg>
gpu.module @m {
  gpu.func @k(%A: memref<64x32xf16>, %B: memref<32x32xf16>, %C: memref<64x32xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x32xf16> -> !xetile.tile<64x32xf16, #xe>
    %tb = xetile.init_tile %B[0, 0] : memref<32x32xf16> -> !xetile.tile<32x32xf16, #xetile.tile_attr<sg_map = <wi_layout = [1, 16], wi_data = [1, 1]>, order = [1, 0], wg_map = <sg_layout = [4, 1], sg_data = [32, 32]>, memory_space = 0>>
    %tc = xetile.init_tile %C[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #xetile.tile_attr<array_length = 1 : i64, scattered = false, wg_map = #wg, sg_map = #sg>>
    %a = xetile.load_tile %ta : !xetile.tile<64x32xf16, #xe> -> vector<64x32xf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x32xf16, #xetile.tile_attr<wg_map = <sg_data = [32, 32], sg_layout = [4, 1]>, sg_map = #sg>> -> vector<32x32xf16>
    %c = xetile.load_tile %tc : !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = #wg, sg_map = #xetile.sg_map<wi_data = [1, 1], wi_layout = [1, 16]>>> -> vector<64x32xf32>
    %d = xetile.tile_mma %a, %b, %c : vector<64x32xf16>, vector<32x32xf16>, vector<64x32xf32> -> vector<64x32xf32>
    xetile.store_tile %d, %tc : vector<64x32xf32>, !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = #wg, sg_map = #sg>>
    gpu.return
  }
}
