// Casts between all kinds of elements, saturating nowhere, bits reinterpreted.
// launch: k (1) (1)
// A: 8x16 f32 integers
// I: 8x16 i8 integers
// F: 8x16 f16 zeros
// J: 8x16 i32 zeros
// K: 8x16 i16 zeros
// L: 8x16 i64 zeros
// D: 8x16 f64 zeros
// expect F = I + A
// expect J = A.astype('i8') + (I & 255)
// expect K = I * 3
// expect L = np.where(I < 0, 1, 0) - np.where(A > 0, 1, 0)
// expect D = A + I / 4
gpu.module @m {
  gpu.func @k(%A: memref<8x16xf32>, %I: memref<8x16xi8>, %F: memref<8x16xf16>, %J: memref<8x16xi32>, %K: memref<8x16xi16>, %L: memref<8x16xi64>, %D: memref<8x16xf64>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %ti = xetile.init_tile %I[0, 0] : memref<8x16xi8> -> !xetile.tile<8x16xi8>
    %a = xetile.load_tile %ta : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    %i = xetile.load_tile %ti : !xetile.tile<8x16xi8> -> vector<8x16xi8>
    %if = arith.sitofp %i : vector<8x16xi8> to vector<8x16xf16>
    %af = arith.truncf %a : vector<8x16xf32> to vector<8x16xf16>
    %f = arith.addf %if, %af : vector<8x16xf16>
    %tf = xetile.init_tile %F[0, 0] : memref<8x16xf16> -> !xetile.tile<8x16xf16>
    xetile.store_tile %f, %tf : vector<8x16xf16>, !xetile.tile<8x16xf16>
    %ai = arith.fptosi %a : vector<8x16xf32> to vector<8x16xi32>
    %iu = arith.extui %i : vector<8x16xi8> to vector<8x16xi32>
    %j = arith.addi %ai, %iu : vector<8x16xi32>
    %tj = xetile.init_tile %J[0, 0] : memref<8x16xi32> -> !xetile.tile<8x16xi32>
    xetile.store_tile %j, %tj : vector<8x16xi32>, !xetile.tile<8x16xi32>
    %is = arith.extsi %i : vector<8x16xi8> to vector<8x16xi32>
    %c3 = arith.constant dense<3> : vector<8x16xi32>
    %k32 = arith.muli %is, %c3 : vector<8x16xi32>
    %k = arith.trunci %k32 : vector<8x16xi32> to vector<8x16xi16>
    %tk = xetile.init_tile %K[0, 0] : memref<8x16xi16> -> !xetile.tile<8x16xi16>
    xetile.store_tile %k, %tk : vector<8x16xi16>, !xetile.tile<8x16xi16>
    %z8 = arith.constant dense<0> : vector<8x16xi8>
    %zf = arith.constant dense<0.0> : vector<8x16xf32>
    %p = arith.cmpi slt, %i, %z8 : vector<8x16xi8>
    %q = arith.cmpf ugt, %a, %zf : vector<8x16xf32>
    %pl = arith.extui %p : vector<8x16xi1> to vector<8x16xi64>
    %ql = arith.extsi %q : vector<8x16xi1> to vector<8x16xi64>
    %l = arith.addi %pl, %ql : vector<8x16xi64>
    %tl = xetile.init_tile %L[0, 0] : memref<8x16xi64> -> !xetile.tile<8x16xi64>
    xetile.store_tile %l, %tl : vector<8x16xi64>, !xetile.tile<8x16xi64>
    %ad = arith.extf %a : vector<8x16xf32> to vector<8x16xf64>
    %id = arith.sitofp %i : vector<8x16xi8> to vector<8x16xf64>
    %quarter = arith.constant dense<2.5e-01> : vector<8x16xf64>
    %iq = arith.mulf %id, %quarter : vector<8x16xf64>
    %d = arith.addf %ad, %iq : vector<8x16xf64>
    %bits = arith.bitcast %d : vector<8x16xf64> to vector<8x16xi64>
    %same = arith.bitcast %bits : vector<8x16xi64> to vector<8x16xf64>
    %td = xetile.init_tile %D[0, 0] : memref<8x16xf64> -> !xetile.tile<8x16xf64>
    xetile.store_tile %same, %td : vector<8x16xf64>, !xetile.tile<8x16xf64>
    gpu.return
  }
}
