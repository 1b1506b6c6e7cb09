// Constants: hexadecimal floats, splats, lists, strings of bytes, booleans, exponents, negatives.
// launch: k (1) (1)
// O: 8x4 f32 zeros
// J: 4x4 i32 zeros
// expect O = np.array([[1, 2, 3, 4], [-1.5, 0.25, 1e3, 2e-1], [1, 1, 1, 1], [2, 0, 0, -1], [np.inf, -np.inf, 1, 0], [1, 0, 1, 1], [7, 7, 7, 7], [0.5, -0.5, 8, 65504]]).astype('f4')
// expect J = np.array([[1, -2, 255, -128], [5, 5, 5, 5], [1, 2, 3, 4], [2147483647, -2147483648, 0, -1]])
gpu.module @m {
  gpu.func @k(%O: memref<8x4xf32>, %J: memref<4x4xi32>) kernel {
    %r0 = arith.constant dense<[[1.0, 2.0, 3.0, 4.0]]> : vector<1x4xf32>
    %r1 = arith.constant dense<[[-1.5, 2.5e-01, 1.0E+3, 0.2]]> : vector<1x4xf32>
    %r2 = arith.constant dense<0x3F800000> : vector<1x4xf32>
    %r3 = arith.constant dense<[[0x40000000, 0.0, -0.0, -1.000000e+00]]> : vector<1x4xf32>
    %r4 = arith.constant dense<[[0x7F800000, 0xFF800000, 1.0, 0.0]]> : vector<1x4xf32>
    %b = arith.constant dense<[[true, false, true, true]]> : vector<1x4xi1>
    %r5 = arith.uitofp %b : vector<1x4xi1> to vector<1x4xf32>
    %s = arith.constant 7.0 : f32
    %r6 = vector.broadcast %s : f32 to vector<1x4xf32>
    %h = arith.constant dense<[[0.5, -0.5, 8.0, 6.550400e+04]]> : vector<1x4xf16>
    %r7 = arith.extf %h : vector<1x4xf16> to vector<1x4xf32>
    %t0 = xetile.init_tile %O[0, 0] : memref<8x4xf32> -> !xetile.tile<1x4xf32>
    %t1 = xetile.init_tile %O[1, 0] : memref<8x4xf32> -> !xetile.tile<1x4xf32>
    %t2 = xetile.init_tile %O[2, 0] : memref<8x4xf32> -> !xetile.tile<1x4xf32>
    %t3 = xetile.init_tile %O[3, 0] : memref<8x4xf32> -> !xetile.tile<1x4xf32>
    %t4 = xetile.init_tile %O[4, 0] : memref<8x4xf32> -> !xetile.tile<1x4xf32>
    %t5 = xetile.init_tile %O[5, 0] : memref<8x4xf32> -> !xetile.tile<1x4xf32>
    %t6 = xetile.init_tile %O[6, 0] : memref<8x4xf32> -> !xetile.tile<1x4xf32>
    %t7 = xetile.init_tile %O[7, 0] : memref<8x4xf32> -> !xetile.tile<1x4xf32>
    xetile.store_tile %r0, %t0 : vector<1x4xf32>, !xetile.tile<1x4xf32>
    xetile.store_tile %r1, %t1 : vector<1x4xf32>, !xetile.tile<1x4xf32>
    xetile.store_tile %r2, %t2 : vector<1x4xf32>, !xetile.tile<1x4xf32>
    xetile.store_tile %r3, %t3 : vector<1x4xf32>, !xetile.tile<1x4xf32>
    xetile.store_tile %r4, %t4 : vector<1x4xf32>, !xetile.tile<1x4xf32>
    xetile.store_tile %r5, %t5 : vector<1x4xf32>, !xetile.tile<1x4xf32>
    xetile.store_tile %r6, %t6 : vector<1x4xf32>, !xetile.tile<1x4xf32>
    xetile.store_tile %r7, %t7 : vector<1x4xf32>, !xetile.tile<1x4xf32>
    %j0 = arith.constant dense<[[1, -2, 0xFF, -0x80]]> : vector<1x4xi32>
    %j1 = arith.constant dense<5> : vector<1x4xi32>
    %j2 = arith.constant dense<"0x01000000020000000300000004000000"> : vector<1x4xi32>
    %j3 = arith.constant dense<[[2147483647, -2147483648, 0, 4294967295]]> : vector<1x4xi32>
    %u0 = xetile.init_tile %J[0, 0] : memref<4x4xi32> -> !xetile.tile<1x4xi32>
    %u1 = xetile.init_tile %J[1, 0] : memref<4x4xi32> -> !xetile.tile<1x4xi32>
    %u2 = xetile.init_tile %J[2, 0] : memref<4x4xi32> -> !xetile.tile<1x4xi32>
    %u3 = xetile.init_tile %J[3, 0] : memref<4x4xi32> -> !xetile.tile<1x4xi32>
    xetile.store_tile %j0, %u0 : vector<1x4xi32>, !xetile.tile<1x4xi32>
    xetile.store_tile %j1, %u1 : vector<1x4xi32>, !xetile.tile<1x4xi32>
    xetile.store_tile %j2, %u2 : vector<1x4xi32>, !xetile.tile<1x4xi32>
    xetile.store_tile %j3, %u3 : vector<1x4xi32>, !xetile.tile<1x4xi32>
    gpu.return
  }
}
