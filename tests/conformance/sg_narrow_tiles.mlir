// Tiles of one row, one column, one element, of widths that fit no vector.
// launch: k (1) (1)
// A: 24x7 f32 integers
// B: 24x7 f32 zeros
// C: 7x24 f32 zeros
// expect B = np.concatenate([A[:, :1] * 2, A[:, 1:3], A[:, 3:7] + 1], 1)
// expect C = np.concatenate([np.array([[A[5, 6]] + [0] * 23]), np.zeros((5, 24)), A[:, 2:3].T])
gpu.module @m {
  gpu.func @k(%A: memref<24x7xf32>, %B: memref<24x7xf32>, %C: memref<7x24xf32>) kernel {
    %t0 = xetile.init_tile %A[0, 0] : memref<24x7xf32> -> !xetile.tile<24x1xf32>
    %t1 = xetile.init_tile %A[0, 1] : memref<24x7xf32> -> !xetile.tile<24x2xf32>
    %t2 = xetile.init_tile %A[0, 3] : memref<24x7xf32> -> !xetile.tile<24x4xf32>
    %t3 = xetile.init_tile %A[5, 6] : memref<24x7xf32> -> !xetile.tile<1x1xf32>
    %v0 = xetile.load_tile %t0 : !xetile.tile<24x1xf32> -> vector<24x1xf32>
    %v1 = xetile.load_tile %t1 : !xetile.tile<24x2xf32> -> vector<24x2xf32>
    %v2 = xetile.load_tile %t2 : !xetile.tile<24x4xf32> -> vector<24x4xf32>
    %v3 = xetile.load_tile %t3 : !xetile.tile<1x1xf32> -> vector<1x1xf32>
    %w0 = arith.addf %v0, %v0 : vector<24x1xf32>
    %one = arith.constant dense<1.0> : vector<24x4xf32>
    %w2 = arith.addf %v2, %one : vector<24x4xf32>
    %u0 = xetile.init_tile %B[0, 0] : memref<24x7xf32> -> !xetile.tile<24x1xf32>
    %u1 = xetile.init_tile %B[0, 1] : memref<24x7xf32> -> !xetile.tile<24x2xf32>
    %u2 = xetile.init_tile %B[0, 3] : memref<24x7xf32> -> !xetile.tile<24x4xf32>
    xetile.store_tile %w0, %u0 : vector<24x1xf32>, !xetile.tile<24x1xf32>
    xetile.store_tile %v1, %u1 : vector<24x2xf32>, !xetile.tile<24x2xf32>
    xetile.store_tile %w2, %u2 : vector<24x4xf32>, !xetile.tile<24x4xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<7x24xf32> -> !xetile.tile<1x1xf32>
    xetile.store_tile %v3, %tc : vector<1x1xf32>, !xetile.tile<1x1xf32>
    %col = vector.extract_strided_slice %v1 {offsets = [0, 1], sizes = [24, 1], strides = [1, 1]} : vector<24x2xf32> to vector<24x1xf32>
    %row = vector.transpose %col, [1, 0] : vector<24x1xf32> to vector<1x24xf32>
    %td = xetile.init_tile %C[6, 0] : memref<7x24xf32> -> !xetile.tile<1x24xf32>
    xetile.store_tile %row, %td : vector<1x24xf32>, !xetile.tile<1x24xf32>
    gpu.return
  }
}
