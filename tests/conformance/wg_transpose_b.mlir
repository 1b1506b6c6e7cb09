// A transpose at workgroup level with maps swapped, as the RFC derives them.
// launch: k (1) (4, 2, 1)
// A: 64x32 f16 integers
// Bt: 64x32 f16 integers
// C: 64x64 f32 zeros
// expect C = A @ Bt.T
#mc = #xetile.wg_map<sg_layout = [4, 2], sg_data = [16, 32]>
#mb = #xetile.wg_map<sg_layout = [4, 2], sg_data = [32, 32]>
#mbt = #xetile.wg_map<sg_layout = [2, 4], sg_data = [32, 32]>
gpu.module @m {
  gpu.func @k(%A: memref<64x32xf16>, %Bt: memref<64x32xf16>, %C: memref<64x64xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<64x32xf16> -> !xetile.tile<64x32xf16, #mc>
    %tb = xetile.init_tile %Bt[0, 0] : memref<64x32xf16> -> !xetile.tile<64x32xf16, #mbt>
    %a = xetile.load_tile %ta : !xetile.tile<64x32xf16, #mc> -> vector<64x32xf16>
    %bt = xetile.load_tile %tb : !xetile.tile<64x32xf16, #mbt> -> vector<64x32xf16>
    %bf = arith.extf %bt {map = #mbt} : vector<64x32xf16> to vector<64x32xf32>
    %bg = arith.truncf %bf {map = #mbt} : vector<64x32xf32> to vector<64x32xf16>
    %b = xetile.transpose %bg, [1, 0] {map = #mb} : vector<64x32xf16> -> vector<32x64xf16>
    %d = xetile.tile_mma %a, %b {wg_map_c = #mc, wg_map_a = #mc, wg_map_b = #mb} : vector<64x32xf16>, vector<32x64xf16> -> vector<64x64xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #mc>
    xetile.store_tile %d, %tc : vector<64x64xf32>, !xetile.tile<64x64xf32, #mc>
    gpu.return
  }
}
