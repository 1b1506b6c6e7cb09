// A column-major B, loaded and prefetched as such, and stored back moved.
// launch: k (1) (1)
// A: 16x32 f16 integers
// B: 32x16 f16 integers T
// C: 16x16 f32 zeros
// D: 32x32 f16 zeros T
// expect C = A @ B
// expect D = np.block([[np.zeros((32, 16)), B]])
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf16>, %B: memref<32x16xf16, affine_map<(d0, d1) -> (d1, d0)>>, %C: memref<16x16xf32>, %D: memref<32x32xf16, strided<[1, 32]>>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<16x32xf16> -> !xetile.tile<16x32xf16>
    %tb = xetile.init_tile %B[0, 0] : memref<32x16xf16, affine_map<(d0, d1) -> (d1, d0)>> -> !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
    xetile.prefetch_tile %tb : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xf16> -> vector<16x32xf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>> -> vector<32x16xf16>
    %d = xetile.tile_mma %a, %b : vector<16x32xf16>, vector<32x16xf16> -> vector<16x16xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    %td = xetile.init_tile %D[0, 0] : memref<32x32xf16, strided<[1, 32]>> -> !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
    %tn = xetile.update_tile_offset %td, [0, 16] : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
    xetile.store_tile %b, %tn : vector<32x16xf16>, !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
    gpu.return
  }
}
