// RUN: xetl-opt %s -p expand-small-floats | filecheck %s

// A product takes bf16; memory and tiles are i8, and so is the padding 1.5.
// CHECK-LABEL: @product
// CHECK-SAME:  memref<8x32xi8>, %B: memref<32x16xi8>
// CHECK:       %a = xetile.load_tile %ta {padding = 60 : i8}
// CHECK:       arith.extui %a : vector<8x32xi8> to vector<8x32xi32>
// CHECK:       %[[A:.*]] = arith.bitcast %{{.*}} : vector<8x32xi16> to vector<8x32xbf16>
// CHECK:       %[[B:.*]] = arith.bitcast %{{.*}} : vector<32x16xi16> to vector<32x16xbf16>
// CHECK:       xetile.tile_mma %[[A]], %[[B]] : vector<8x32xbf16>, vector<32x16xbf16> -> vector<8x16xf32>
func.func @product(%A: memref<8x32xf8E4M3FN>, %B: memref<32x16xf8E5M2>) -> vector<8x16xf32> {
  %ta = xetile.init_tile %A[0, 0] : memref<8x32xf8E4M3FN> -> !xetile.tile<8x32xf8E4M3FN>
  %a = xetile.load_tile %ta {padding = 1.5 : f32} : !xetile.tile<8x32xf8E4M3FN> -> vector<8x32xf8E4M3FN>
  %tb = xetile.init_tile %B[0, 0] : memref<32x16xf8E5M2> -> !xetile.tile<32x16xf8E5M2>
  %b = xetile.load_tile %tb : !xetile.tile<32x16xf8E5M2> -> vector<32x16xf8E5M2>
  %d = xetile.tile_mma %a, %b : vector<8x32xf8E4M3FN>, vector<32x16xf8E5M2> -> vector<8x16xf32>
  func.return %d : vector<8x16xf32>
}

// What computes does so in f32; a value is widened once, also for several readers.
// CHECK-LABEL: @computes
// CHECK:       %[[C:.*]] = arith.constant dense<[0, 60, 62, -64]> : vector<4xi8>
// CHECK:       %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK:       arith.trunci %{{.*}} : vector<4xi32> to vector<4xi8>
// CHECK:       arith.cmpf
// CHECK-NOT:   arith.extui
// CHECK:       func.return
func.func @computes(%a: vector<4xf8E5M2>) -> (vector<4xf8E5M2>, vector<4xi1>) {
  %c = arith.constant dense<[0.0, 1.0, 1.5, -2.0]> : vector<4xf8E5M2>
  %s = arith.addf %a, %c : vector<4xf8E5M2>
  %m = arith.cmpf olt, %a, %c : vector<4xf8E5M2>
  func.return %s, %m : vector<4xf8E5M2>, vector<4xi1>
}

// What moves elements works on i8, and a bitcast is gone.
// CHECK-LABEL: @moves
// CHECK-SAME:  (%a: vector<4x8xi8>, %m: vector<4x8xi1>) -> vector<8x4xi8>
// CHECK-NEXT:  %[[S:.*]] = arith.select %m, %a, %a : vector<4x8xi1>, vector<4x8xi8>
// CHECK-NEXT:  %[[T:.*]] = xetile.tile_transpose %[[S]], [1, 0] : vector<4x8xi8> -> vector<8x4xi8>
// CHECK-NEXT:  func.return %[[T]]
func.func @moves(%a: vector<4x8xf8E4M3FN>, %m: vector<4x8xi1>) -> vector<8x4xi8> {
  %s = arith.select %m, %a, %a : vector<4x8xi1>, vector<4x8xf8E4M3FN>
  %t = xetile.tile_transpose %s, [1, 0] : vector<4x8xf8E4M3FN> -> vector<8x4xf8E4M3FN>
  %b = arith.bitcast %t : vector<8x4xf8E4M3FN> to vector<8x4xi8>
  func.return %b : vector<8x4xi8>
}
