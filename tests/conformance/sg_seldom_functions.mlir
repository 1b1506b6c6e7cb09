// Functions that others express: tests, clamps, long products, inverse hyperbolics, affine values.
// launch: k (2) (1)
// A: 2x16 f32 positive
// I: 2x16 i32 integers
// F: 12x16 f32 zeros
// J: 6x16 i32 zeros
// tolerance: 2e-6
// expect F = np.concatenate([np.stack([np.arcsinh(a), np.arccosh(a + 1), np.arctanh(a / 4), np.clip(a, 0.75, 1.5), a ** 2, np.sin(a) + np.cos(a)]) for a in A])
// expect J = np.concatenate([np.stack([i * 65536 & 0xFFFFFFFF, i * 65536 * 65536 // 2 ** 32, np.full(16, 4 * k + 3)]) for k, i in enumerate(I)]).astype('i4')
#map = affine_map<(d0)[s0] -> (d0 * 4 + s0)>
#row = affine_map<(d0) -> (d0 * 6)>
gpu.module @m {
  gpu.func @k(%A: memref<2x16xf32>, %I: memref<2x16xi32>, %F: memref<12x16xf32>, %J: memref<6x16xi32>) kernel {
    %x = gpu.block_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %f0 = affine.apply #row(%x)
    %f1 = arith.addi %f0, %c1 : index
    %f2 = arith.addi %f0, %c2 : index
    %f3 = arith.addi %f0, %c3 : index
    %f4 = arith.addi %f0, %c4 : index
    %f5 = arith.addi %f0, %c5 : index
    %a = vector.load %A[%x, %c0] : memref<2x16xf32>, vector<16xf32>
    %one = arith.constant dense<1.0> : vector<16xf32>
    %quarter = arith.constant dense<0.25> : vector<16xf32>
    %lo = arith.constant dense<0.75> : vector<16xf32>
    %hi = arith.constant dense<1.5> : vector<16xf32>
    %two = arith.constant dense<2> : vector<16xi32>
    %0 = math.asinh %a : vector<16xf32>
    %a1 = arith.addf %a, %one : vector<16xf32>
    %1 = math.acosh %a1 : vector<16xf32>
    %a4 = arith.mulf %a, %quarter : vector<16xf32>
    %2 = math.atanh %a4 : vector<16xf32>
    %3 = math.clampf %a to [%lo, %hi] : vector<16xf32>
    %4 = math.fpowi %a, %two : vector<16xf32>, vector<16xi32>
    %s, %c = math.sincos %a : vector<16xf32>
    %5 = arith.addf %s, %c : vector<16xf32>
    vector.store %0, %F[%f0, %c0] : memref<12x16xf32>, vector<16xf32>
    vector.store %1, %F[%f1, %c0] : memref<12x16xf32>, vector<16xf32>
    vector.store %2, %F[%f2, %c0] : memref<12x16xf32>, vector<16xf32>
    vector.store %3, %F[%f3, %c0] : memref<12x16xf32>, vector<16xf32>
    vector.store %4, %F[%f4, %c0] : memref<12x16xf32>, vector<16xf32>
    vector.store %5, %F[%f5, %c0] : memref<12x16xf32>, vector<16xf32>
    %i = vector.load %I[%x, %c0] : memref<2x16xi32>, vector<16xi32>
    %big = arith.constant dense<65536> : vector<16xi32>
    %ib = arith.muli %i, %big : vector<16xi32>
    %low, %high = arith.mulsi_extended %ib, %big : vector<16xi32>
    %n = affine.apply #map(%x)[%c3]
    %ni = arith.index_cast %n : index to i32
    %nv = vector.broadcast %ni : i32 to vector<16xi32>
    %j0 = arith.muli %x, %c3 : index
    %j1 = arith.addi %j0, %c1 : index
    %j2 = arith.addi %j0, %c2 : index
    vector.store %ib, %J[%j0, %c0] : memref<6x16xi32>, vector<16xi32>
    vector.store %high, %J[%j1, %c0] : memref<6x16xi32>, vector<16xi32>
    vector.store %nv, %J[%j2, %c0] : memref<6x16xi32>, vector<16xi32>
    gpu.return
  }
}
