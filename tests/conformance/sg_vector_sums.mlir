// vector.reduction, fma, contract, outerproduct, multi_reduction with kinds of integers.
// launch: k (1) (1)
// A: 8x16 f32 integers
// B: 16x8 f32 integers
// C: 8x8 f32 zeros
// R: 4 f32 zeros
// I: 8x16 i32 integers
// J: 16 i32 zeros
// expect C = A @ B + np.outer(A[:, 0], B[0])
// expect R = np.array([A.sum(), A.max() + 0, A.min(), A[0].sum() + 2])
// expect J = np.concatenate([I.max(1), I.min(1)])
gpu.module @m {
  gpu.func @k(%A: memref<8x16xf32>, %B: memref<16x8xf32>, %C: memref<8x8xf32>, %R: memref<4xf32>, %I: memref<8x16xi32>, %J: memref<16xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %ta = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %tb = xetile.init_tile %B[0, 0] : memref<16x8xf32> -> !xetile.tile<16x8xf32>
    %a = xetile.load_tile %ta : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    %b = xetile.load_tile %tb : !xetile.tile<16x8xf32> -> vector<16x8xf32>
    %zero = arith.constant dense<0.0> : vector<8x8xf32>
    %d = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %zero : vector<8x16xf32>, vector<16x8xf32> into vector<8x8xf32>
    %at = vector.transpose %a, [1, 0] : vector<8x16xf32> to vector<16x8xf32>
    %col = vector.extract %at[0] : vector<8xf32> from vector<16x8xf32>
    %row = vector.extract %b[0] : vector<8xf32> from vector<16x8xf32>
    %e = vector.outerproduct %col, %row, %d {kind = #vector.kind<add>} : vector<8xf32>, vector<8xf32>
    %tc = xetile.init_tile %C[0, 0] : memref<8x8xf32> -> !xetile.tile<8x8xf32>
    xetile.store_tile %e, %tc : vector<8x8xf32>, !xetile.tile<8x8xf32>
    %flat = vector.shape_cast %a : vector<8x16xf32> to vector<128xf32>
    %s = vector.reduction <add>, %flat : vector<128xf32> into f32
    %m = vector.reduction <maximumf>, %flat : vector<128xf32> into f32
    %n = vector.reduction <minimumf>, %flat fastmath<nnan> : vector<128xf32> into f32
    %two = arith.constant 2.0 : f32
    %first = vector.extract %a[0] : vector<16xf32> from vector<8x16xf32>
    %p = vector.reduction <add>, %first, %two : vector<16xf32> into f32
    memref.store %s, %R[%c0] : memref<4xf32>
    memref.store %m, %R[%c1] : memref<4xf32>
    memref.store %n, %R[%c2] : memref<4xf32>
    memref.store %p, %R[%c3] : memref<4xf32>
    %ti = xetile.init_tile %I[0, 0] : memref<8x16xi32> -> !xetile.tile<8x16xi32>
    %i = xetile.load_tile %ti : !xetile.tile<8x16xi32> -> vector<8x16xi32>
    %low = arith.constant dense<-2147483648> : vector<8xi32>
    %high = arith.constant dense<2147483647> : vector<8xi32>
    %x = vector.multi_reduction <maxsi>, %i, %low [1] : vector<8x16xi32> to vector<8xi32>
    %y = vector.multi_reduction <minsi>, %i, %high [1] : vector<8x16xi32> to vector<8xi32>
    vector.store %x, %J[%c0] : memref<16xi32>, vector<8xi32>
    vector.store %y, %J[%c8] : memref<16xi32>, vector<8xi32>
    gpu.return
  }
}
