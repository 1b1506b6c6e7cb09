// Every kind on integers and floats; both dims; the RFC's name; kinds quoted, bare and bracketed.
// launch: k (1) (1)
// A: 16x32 f32 integers
// I: 16x32 i32 integers
// R: 4x32 f32 zeros
// C: 16x3 f32 zeros
// J: 6x32 i32 zeros
// expect R = np.stack([A.sum(0), np.sign(A).prod(0), A.min(0), A.max(0)])
// expect C = np.stack([A.sum(1), A.min(1), A.max(1)], 1)
// expect J = np.stack([I.sum(0), I.min(0), I.max(0), np.bitwise_and.reduce(I, 0), np.bitwise_or.reduce(I, 0), np.bitwise_xor.reduce(I, 0)])
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf32>, %I: memref<16x32xi32>, %R: memref<4x32xf32>, %C: memref<16x3xf32>, %J: memref<6x32xi32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xf32> -> vector<16x32xf32>
    %z = arith.constant dense<0.0> : vector<16x32xf32>
    %o = arith.constant dense<1.0> : vector<16x32xf32>
    %n = arith.constant dense<-1.0> : vector<16x32xf32>
    %p = arith.cmpf olt, %a, %z : vector<16x32xf32>
    %q = arith.cmpf ogt, %a, %z : vector<16x32xf32>
    %g0 = arith.select %p, %n, %z : vector<16x32xi1>, vector<16x32xf32>
    %g = arith.select %q, %o, %g0 : vector<16x32xi1>, vector<16x32xf32>
    %r0 = xetile.tile_reduce <add> %a [0] : vector<16x32xf32> -> vector<1x32xf32>
    %r1 = xetile.reduction <mul>, %g [0] : vector<16x32xf32> -> vector<1x32xf32>
    %r2 = xetile.reduction <minimumf>, %a [0] : vector<16x32xf32> -> vector<1x32xf32>
    %r3 = xetile.reduction <maximumf>, %a [0] : vector<16x32xf32> -> vector<1x32xf32>
    %t0 = xetile.init_tile %R[0, 0] : memref<4x32xf32> -> !xetile.tile<1x32xf32>
    %t1 = xetile.update_tile_offset %t0, [1, 0] : !xetile.tile<1x32xf32>
    %t2 = xetile.update_tile_offset %t1, [1, 0] : !xetile.tile<1x32xf32>
    %t3 = xetile.update_tile_offset %t2, [1, 0] : !xetile.tile<1x32xf32>
    xetile.store_tile %r0, %t0 : vector<1x32xf32>, !xetile.tile<1x32xf32>
    xetile.store_tile %r1, %t1 : vector<1x32xf32>, !xetile.tile<1x32xf32>
    xetile.store_tile %r2, %t2 : vector<1x32xf32>, !xetile.tile<1x32xf32>
    xetile.store_tile %r3, %t3 : vector<1x32xf32>, !xetile.tile<1x32xf32>
    %c0 = xetile.reduction <add>, %a [1] : vector<16x32xf32> -> vector<16x1xf32>
    %c1 = xetile.reduction <minnumf>, %a [1] : vector<16x32xf32> -> vector<16x1xf32>
    %c2 = xetile.reduction <maxnumf>, %a [1] : vector<16x32xf32> -> vector<16x1xf32>
    %u0 = xetile.init_tile %C[0, 0] : memref<16x3xf32> -> !xetile.tile<16x1xf32>
    %u1 = xetile.init_tile %C[0, 1] : memref<16x3xf32> -> !xetile.tile<16x1xf32>
    %u2 = xetile.init_tile %C[0, 2] : memref<16x3xf32> -> !xetile.tile<16x1xf32>
    xetile.store_tile %c0, %u0 : vector<16x1xf32>, !xetile.tile<16x1xf32>
    xetile.store_tile %c1, %u1 : vector<16x1xf32>, !xetile.tile<16x1xf32>
    xetile.store_tile %c2, %u2 : vector<16x1xf32>, !xetile.tile<16x1xf32>
    %ti = xetile.init_tile %I[0, 0] : memref<16x32xi32> -> !xetile.tile<16x32xi32>
    %i = xetile.load_tile %ti : !xetile.tile<16x32xi32> -> vector<16x32xi32>
    %c_0 = arith.constant 0 : index
    %j0 = xetile.reduction <add>, %i [0] : vector<16x32xi32> -> vector<1x32xi32>
    %j1 = xetile.reduction <minsi>, %i [0] : vector<16x32xi32> -> vector<1x32xi32>
    %j2 = xetile.reduction <maxsi>, %i [0] : vector<16x32xi32> -> vector<1x32xi32>
    %j3 = xetile.reduction <and>, %i [0] : vector<16x32xi32> -> vector<1x32xi32>
    %j4 = xetile.reduction <or>, %i [0] : vector<16x32xi32> -> vector<1x32xi32>
    %j5 = xetile.reduction <xor>, %i [0] : vector<16x32xi32> -> vector<1x32xi32>
    %w0 = xetile.init_tile %J[0, 0] : memref<6x32xi32> -> !xetile.tile<1x32xi32>
    %w1 = xetile.init_tile %J[1, 0] : memref<6x32xi32> -> !xetile.tile<1x32xi32>
    %w2 = xetile.init_tile %J[2, 0] : memref<6x32xi32> -> !xetile.tile<1x32xi32>
    %w3 = xetile.init_tile %J[3, 0] : memref<6x32xi32> -> !xetile.tile<1x32xi32>
    %w4 = xetile.init_tile %J[4, 0] : memref<6x32xi32> -> !xetile.tile<1x32xi32>
    %w5 = xetile.init_tile %J[5, %c_0] : memref<6x32xi32> -> !xetile.tile<1x32xi32>
    xetile.store_tile %j0, %w0 : vector<1x32xi32>, !xetile.tile<1x32xi32>
    xetile.store_tile %j1, %w1 : vector<1x32xi32>, !xetile.tile<1x32xi32>
    xetile.store_tile %j2, %w2 : vector<1x32xi32>, !xetile.tile<1x32xi32>
    xetile.store_tile %j3, %w3 : vector<1x32xi32>, !xetile.tile<1x32xi32>
    xetile.store_tile %j4, %w4 : vector<1x32xi32>, !xetile.tile<1x32xi32>
    xetile.store_tile %j5, %w5 : vector<1x32xi32>, !xetile.tile<1x32xi32>
    gpu.return
  }
}
