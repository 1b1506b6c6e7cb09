// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s -p legalize-vectors,canonicalize | filecheck %s --check-prefix=TILES
// XeTile RFC (seed 001), appendix 1: the same programs with memref and vector, and what
// lowers them: "subview maps to init_tile, transfer_read to load_tile, contract to tile_mma".
// Here M = 128, N = 192, K = 96: a subview may not reach over an edge.
// Corrected: A, B and C are arguments, not allocated; "col-major" strides are [1, K], not
// [K, 1]; transfers and contractions in full; products are added up in f32 and stored.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// BT as the column-major matrix that it is.
// CHECK: func.func @column_major
// TILES: func.func @column_major
// TILES-NOT: memref.subview
// TILES: xetile.init_tile %A[%i, %k] : memref<128x96xbf16> -> !xetile.tile<64x32xbf16>
// TILES: xetile.init_tile %B[%k, %j] : memref<96x192xbf16, strided<[1, 96]>> -> !xetile.tile<32x64xbf16, #xetile.tile_attr<order = [0, 1]>>
// TILES: xetile.tile_mma
// TILES: xetile.init_tile %C[%i, %j]
func.func @column_major(%A: memref<128x96xbf16>, %B: memref<96x192xbf16, strided<[1, 96]>>, %C: memref<128x192xbf16>) {
  %c0 = arith.constant 0 : index
  %K_tile = arith.constant 32 : index
  %M_tile = arith.constant 64 : index
  %N_tile = arith.constant 64 : index
  %M = arith.constant 128 : index
  %N = arith.constant 192 : index
  %K = arith.constant 96 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  scf.for %i = %c0 to %M step %M_tile {
    scf.for %j = %c0 to %N step %N_tile {
      %sum = scf.for %k = %c0 to %K step %K_tile iter_args(%acc = %zero) -> (vector<64x64xf32>) {
        %a = memref.subview %A[%i, %k] [64, 32] [1, 1] : memref<128x96xbf16> to memref<64x32xbf16, strided<[96, 1], offset: ?>>
        %b = memref.subview %B[%k, %j] [32, 64] [1, 1] : memref<96x192xbf16, strided<[1, 96]>> to memref<32x64xbf16, strided<[1, 96], offset: ?>>
        %va = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<64x32xbf16, strided<[96, 1], offset: ?>>, vector<64x32xbf16>
        %vb = vector.transfer_read %b[%c0, %c0], %pad {in_bounds = [true, true]} : memref<32x64xbf16, strided<[1, 96], offset: ?>>, vector<32x64xbf16>
        %vc = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %va, %vb, %acc : vector<64x32xbf16>, vector<32x64xbf16> into vector<64x64xf32>
        scf.yield %vc : vector<64x64xf32>
      }
      %c = memref.subview %C[%i, %j] [64, 64] [1, 1] : memref<128x192xbf16> to memref<64x64xbf16, strided<[192, 1], offset: ?>>
      %rounded = arith.truncf %sum : vector<64x64xf32> to vector<64x64xbf16>
      vector.transfer_write %rounded, %c[%c0, %c0] {in_bounds = [true, true]} : vector<64x64xbf16>, memref<64x64xbf16, strided<[192, 1], offset: ?>>
    }
  }
  return
}

// BT as it lies in memory, transposed as a vector.
// CHECK: func.func @transposed
// TILES: func.func @transposed
// TILES: xetile.init_tile %BT[%j, %k] : memref<192x96xbf16> -> !xetile.tile<64x32xbf16>
// TILES: xetile.tile_transpose
// TILES: xetile.tile_mma
func.func @transposed(%A: memref<128x96xbf16>, %BT: memref<192x96xbf16>, %C: memref<128x192xbf16>) {
  %c0 = arith.constant 0 : index
  %K_tile = arith.constant 32 : index
  %M_tile = arith.constant 64 : index
  %N_tile = arith.constant 64 : index
  %M = arith.constant 128 : index
  %N = arith.constant 192 : index
  %K = arith.constant 96 : index
  %pad = arith.constant 0.0 : bf16
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  scf.for %i = %c0 to %M step %M_tile {
    scf.for %j = %c0 to %N step %N_tile {
      %sum = scf.for %k = %c0 to %K step %K_tile iter_args(%acc = %zero) -> (vector<64x64xf32>) {
        %a = memref.subview %A[%i, %k] [64, 32] [1, 1] : memref<128x96xbf16> to memref<64x32xbf16, strided<[96, 1], offset: ?>>
        %bt = memref.subview %BT[%j, %k] [64, 32] [1, 1] : memref<192x96xbf16> to memref<64x32xbf16, strided<[96, 1], offset: ?>>
        %va = vector.transfer_read %a[%c0, %c0], %pad {in_bounds = [true, true]} : memref<64x32xbf16, strided<[96, 1], offset: ?>>, vector<64x32xbf16>
        %vbt = vector.transfer_read %bt[%c0, %c0], %pad {in_bounds = [true, true]} : memref<64x32xbf16, strided<[96, 1], offset: ?>>, vector<64x32xbf16>
        %vb = vector.transpose %vbt, [1, 0] : vector<64x32xbf16> to vector<32x64xbf16>
        %vc = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %va, %vb, %acc : vector<64x32xbf16>, vector<32x64xbf16> into vector<64x64xf32>
        scf.yield %vc : vector<64x64xf32>
      }
      %c = memref.subview %C[%i, %j] [64, 64] [1, 1] : memref<128x192xbf16> to memref<64x64xbf16, strided<[192, 1], offset: ?>>
      %rounded = arith.truncf %sum : vector<64x64xf32> to vector<64x64xbf16>
      vector.transfer_write %rounded, %c[%c0, %c0] {in_bounds = [true, true]} : vector<64x64xbf16>, memref<64x64xbf16, strided<[192, 1], offset: ?>>
    }
  }
  return
}
