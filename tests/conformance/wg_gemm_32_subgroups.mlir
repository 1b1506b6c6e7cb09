// 8x4 subgroups, i8 products, prefetch tiles with maps of their own.
// launch: k (1) (8, 4, 1)
// A: 128x64 i8 integers
// B: 64x128 i8 integers
// C: 128x128 i32 zeros
// expect C = A @ B
#a = #xetile.wg_map<sg_layout = [8, 4], sg_data = [16, 64]>
#b = #xetile.wg_map<sg_layout = [8, 4], sg_data = [64, 32]>
#c = #xetile.wg_map<sg_layout = [8, 4], sg_data = [16, 32]>
#pa = #xetile.wg_map<sg_layout = [32, 1], sg_data = [4, 64]>
gpu.module @w {
  gpu.func @k(%A: memref<128x64xi8>, %B: memref<64x128xi8>, %C: memref<128x128xi32>) kernel attributes {known_block_size = array<i32: 8, 4, 1>} {
    %ta = xetile.init_tile %A[0, 0] : memref<128x64xi8> -> !xetile.tile<128x64xi8, #a>
    %tp = xetile.init_tile %A[0, 0] : memref<128x64xi8> -> !xetile.tile<128x64xi8, #xetile.tile_attr<wg = #pa>>
    %tb = xetile.init_tile %B[0, 0] : memref<64x128xi8> -> !xetile.tile<64x128xi8, #b>
    %tc = xetile.init_tile %C[0, 0] : memref<128x128xi32> -> !xetile.tile<128x128xi32, #c>
    xetile.prefetch_tile %tp : !xetile.tile<128x64xi8, #xetile.tile_attr<wg = #pa>>
    %va = xetile.load_tile %ta : !xetile.tile<128x64xi8, #a> -> vector<128x64xi8>
    %vb = xetile.load_tile %tb : !xetile.tile<64x128xi8, #b> -> vector<64x128xi8>
    %zero = arith.constant {map = #c} dense<0> : vector<128x128xi32>
    %d = xetile.tile_mma %va, %vb, %zero {wg_map_a = #a, wg_map_b = #b, wg_map_c = #c} : vector<128x64xi8>, vector<64x128xi8>, vector<128x128xi32> -> vector<128x128xi32>
    xetile.store_tile %d, %tc : vector<128x128xi32>, !xetile.tile<128x128xi32, #c>
    gpu.return
  }
}
