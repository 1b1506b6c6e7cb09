// RUN: xetl-opt %s | filecheck %s
// XeTile RFC (seed 001), appendix 1: C = A B where memory holds A and B, or A and B
// transposed. The document's loops, in tiles of 64x32 and 32x64, of any M, N and K.
// Corrected: the products of a block are added up, in f32, and stored (the document
// leaves the addend and the store out); the third listing multiplies %va by %vb, which
// it has just made, not by %vbt.
// The listings of vector and memref: appendix_1_vector.mlir.

// The most common case: everything row major.
// CHECK: func.func @row_major
func.func @row_major(%A: memref<?x?xbf16>, %B: memref<?x?xbf16>, %C: memref<?x?xbf16>, %M: index, %N: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M_tile = arith.constant 64 : index
  %N_tile = arith.constant 64 : index
  %K_tile = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  scf.for %i = %c0 to %M step %M_tile {
    scf.for %j = %c0 to %N step %N_tile {
      %sum = scf.for %k = %c0 to %K step %K_tile iter_args(%acc = %zero) -> (vector<64x64xf32>) {
        %a = xetile.init_tile %A, [%i, %k], [%M, %K], [%K, 1] : memref<?x?xbf16> -> !xetile.tile<64x32xbf16>
        %b = xetile.init_tile %B, [%k, %j], [%K, %N], [%N, 1] : memref<?x?xbf16> -> !xetile.tile<32x64xbf16>
        %va = xetile.load_tile %a : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
        %vb = xetile.load_tile %b : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
        %vc = xetile.tile_mma %va, %vb, %acc : vector<64x32xbf16>, vector<32x64xbf16>, vector<64x64xf32> into vector<64x64xf32>
        scf.yield %vc : vector<64x64xf32>
      }
      %c = xetile.init_tile %C, [%i, %j], [%M, %N], [%N, 1] : memref<?x?xbf16> -> !xetile.tile<64x64xbf16>
      %rounded = arith.truncf %sum : vector<64x64xf32> to vector<64x64xbf16>
      xetile.store_tile %rounded, %c : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
    }
  }
  return
}

// Memory holds BT[N, K]; the program is that for B[K, N]: strides [1, K] and order [0, 1].
// CHECK: func.func @column_major
// CHECK: !xetile.tile<32x64xbf16, #xetile.tile_attr<order = [0, 1]>>
func.func @column_major(%A: memref<?x?xbf16>, %BT: memref<?x?xbf16>, %C: memref<?x?xbf16>, %M: index, %N: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M_tile = arith.constant 64 : index
  %N_tile = arith.constant 64 : index
  %K_tile = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  scf.for %i = %c0 to %M step %M_tile {
    scf.for %j = %c0 to %N step %N_tile {
      %sum = scf.for %k = %c0 to %K step %K_tile iter_args(%acc = %zero) -> (vector<64x64xf32>) {
        %a = xetile.init_tile %A, [%i, %k], [%M, %K], [%K, 1] : memref<?x?xbf16> -> !xetile.tile<64x32xbf16>
        %b = xetile.init_tile %BT, [%k, %j], [%K, %N], [1, %K] : memref<?x?xbf16> -> !xetile.tile<32x64xbf16, #xetile.tile_attr<order = [0, 1]>>
        %va = xetile.load_tile %a : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
        %vb = xetile.load_tile %b : !xetile.tile<32x64xbf16, #xetile.tile_attr<order = [0, 1]>> -> vector<32x64xbf16>
        %vc = xetile.tile_mma %va, %vb, %acc : vector<64x32xbf16>, vector<32x64xbf16>, vector<64x64xf32> into vector<64x64xf32>
        scf.yield %vc : vector<64x64xf32>
      }
      %c = xetile.init_tile %C, [%i, %j], [%M, %N], [%N, 1] : memref<?x?xbf16> -> !xetile.tile<64x64xbf16>
      %rounded = arith.truncf %sum : vector<64x64xf32> to vector<64x64xbf16>
      xetile.store_tile %rounded, %c : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
    }
  }
  return
}

// The same memory, loaded as it is and transposed as a value.
// CHECK: func.func @transposed
// CHECK: xetile.tile_transpose
func.func @transposed(%A: memref<?x?xbf16>, %BT: memref<?x?xbf16>, %C: memref<?x?xbf16>, %M: index, %N: index, %K: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M_tile = arith.constant 64 : index
  %N_tile = arith.constant 64 : index
  %K_tile = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  scf.for %i = %c0 to %M step %M_tile {
    scf.for %j = %c0 to %N step %N_tile {
      %sum = scf.for %k = %c0 to %K step %K_tile iter_args(%acc = %zero) -> (vector<64x64xf32>) {
        %a = xetile.init_tile %A, [%i, %k], [%M, %K], [%K, 1] : memref<?x?xbf16> -> !xetile.tile<64x32xbf16>
        %bt = xetile.init_tile %BT, [%j, %k], [%N, %K], [%K, 1] : memref<?x?xbf16> -> !xetile.tile<64x32xbf16>
        %va = xetile.load_tile %a : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
        %vbt = xetile.load_tile %bt : !xetile.tile<64x32xbf16> -> vector<64x32xbf16>
        %vb = xetile.tile_transpose %vbt [1, 0] : vector<64x32xbf16> into vector<32x64xbf16>
        %vc = xetile.tile_mma %va, %vb, %acc : vector<64x32xbf16>, vector<32x64xbf16>, vector<64x64xf32> into vector<64x64xf32>
        scf.yield %vc : vector<64x64xf32>
      }
      %c = xetile.init_tile %C, [%i, %j], [%M, %N], [%N, 1] : memref<?x?xbf16> -> !xetile.tile<64x64xbf16>
      %rounded = arith.truncf %sum : vector<64x64xf32> to vector<64x64xbf16>
      xetile.store_tile %rounded, %c : vector<64x64xbf16>, !xetile.tile<64x64xbf16>
    }
  }
  return
}

// "Correct lowering": the order says what the layout of the memref says.
// CHECK: func.func @orders
func.func @orders(%rows: memref<1024x1024xf16>, %columns: memref<1024x1024xf16, affine_map<(d0, d1) -> (d1, d0)>>, %out: memref<192x32xf16>) {
  %0 = xetile.init_tile %rows[0, 0] : memref<1024x1024xf16> -> !xetile.tile<64x32xf16, #xetile.tile_attr<order = [1, 0]>>
  %1 = xetile.init_tile %rows[0, 0] : memref<1024x1024xf16> -> !xetile.tile<64x32xf16>
  %2 = xetile.init_tile %columns[0, 0] : memref<1024x1024xf16, affine_map<(d0, d1) -> (d1, d0)>> -> !xetile.tile<64x32xf16, #xetile.tile_attr<order = [0, 1]>>
  %v0 = xetile.load_tile %0 : !xetile.tile<64x32xf16, #xetile.tile_attr<order = [1, 0]>> -> vector<64x32xf16>
  %v1 = xetile.load_tile %1 : !xetile.tile<64x32xf16> -> vector<64x32xf16>
  %v2 = xetile.load_tile %2 : !xetile.tile<64x32xf16, #xetile.tile_attr<order = [0, 1]>> -> vector<64x32xf16>
  %t0 = xetile.init_tile %out[0, 0] : memref<192x32xf16> -> !xetile.tile<64x32xf16>
  %t1 = xetile.init_tile %out[64, 0] : memref<192x32xf16> -> !xetile.tile<64x32xf16>
  %t2 = xetile.init_tile %out[128, 0] : memref<192x32xf16> -> !xetile.tile<64x32xf16>
  xetile.store_tile %v0, %t0 : vector<64x32xf16>, !xetile.tile<64x32xf16>
  xetile.store_tile %v1, %t1 : vector<64x32xf16>, !xetile.tile<64x32xf16>
  xetile.store_tile %v2, %t2 : vector<64x32xf16>, !xetile.tile<64x32xf16>
  return
}
