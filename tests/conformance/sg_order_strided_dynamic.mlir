// `strided<[?, 1], offset: ?>`, `strided<[1, ?]>` and a memref of rank 3 with leading offsets.
// launch: k (2) (1)
// A: 32x16 f32 integers padded
// B: 16x32 f32 integers T
// C: 2x16x16 f32 zeros
// rows: 32
// pitch: 24
// expect C = np.stack([A[:16] @ B[:, :16], A[16:] @ B[:, 16:]])
gpu.module @m {
  gpu.func @k(%A: memref<?x?xf32, strided<[?, 1], offset: ?>>, %B: memref<16x32xf32, strided<[1, ?]>>, %C: memref<2x16x16xf32>, %rows: index, %pitch: index) kernel {
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %m = arith.muli %x, %c16 : index
    %ta = xetile.init_tile %A[%m, 0], [%rows, %c16], [%pitch, 1] : memref<?x?xf32, strided<[?, 1], offset: ?>> -> !xetile.tile<16x16xf32>
    %tb = xetile.init_tile %B[0, %m], [16, 32], [1, 16] : memref<16x32xf32, strided<[1, ?]>> -> !xetile.tile<16x16xf32, #xetile.tile_attr<order = [0, 1]>>
    %tc = xetile.init_tile %C[%x, 0, 0] : memref<2x16x16xf32> -> !xetile.tile<16x16xf32>
    %a = xetile.load_tile %ta : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %b = xetile.load_tile %tb : !xetile.tile<16x16xf32, #xetile.tile_attr<order = [0, 1]>> -> vector<16x16xf32>
    %d = xetile.tile_mma %a, %b : vector<16x16xf32>, vector<16x16xf32> -> vector<16x16xf32>
    xetile.store_tile %d, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}
