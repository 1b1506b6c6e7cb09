// RUN: xetl-opt %s -p legalize-text | filecheck %s
// Operations that others express become those.

// CHECK-LABEL: @numbers
// CHECK: arith.cmpf uno, %x, %x : vector<8xf32>
// CHECK: math.absf %x
// CHECK: arith.cmpf oeq
// CHECK: math.absf %x
// CHECK: arith.cmpf olt
// CHECK: arith.maximumf %x, %x
// CHECK: arith.minimumf
// CHECK: arith.sitofp %i : vector<8xi32> to vector<8xf32>
// CHECK: math.powf
// CHECK: math.sin %x
// CHECK: math.cos %x
// CHECK: math.asinh %x
func.func @numbers(%x: vector<8xf32>, %i: vector<8xi32>) -> (vector<8xi1>, vector<8xi1>, vector<8xi1>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
  %0 = math.isnan %x : vector<8xf32>
  %1 = math.isinf %x fastmath<fast> : vector<8xf32>
  %2 = math.isfinite %x : vector<8xf32>
  %3 = math.clampf %x to [%x, %x] : vector<8xf32>
  %4 = math.fpowi %x, %i : vector<8xf32>, vector<8xi32>
  %5, %6 = math.sincos %x : vector<8xf32>
  %7 = math.asinh %x : vector<8xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : vector<8xi1>, vector<8xi1>, vector<8xi1>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
}

// CHECK-LABEL: @long
// CHECK: %[[SUM:.*]] = arith.addi %a, %b : i32
// CHECK: arith.cmpi ult, %[[SUM]], %a : i32
// CHECK: arith.extsi %a : i32 to i64
// CHECK: arith.trunci
// CHECK-NOT: extended
func.func @long(%a: i32, %b: i32) -> (i32, i1, i32, i32) {
  %0, %1 = arith.addui_extended %a, %b : i32, i1
  %2, %3 = arith.mulsi_extended %a, %b : i32
  return %0, %1, %2, %3 : i32, i1, i32, i32
}

// CHECK-LABEL: @vectors
// CHECK: vector.interleave %a, %a
// CHECK: vector.extract_strided_slice
// CHECK: vector.extract_strided_slice
// CHECK: vector.broadcast %{{.*}} : vector<4x1xf32> to vector<4x4xf32>
// CHECK: arith.mulf
// CHECK: vector.broadcast %s : f32 to vector<4xf32>
// CHECK: vector.extract %a[%{{.*}}] : f32 from vector<4xf32>
func.func @vectors(%a: vector<4xf32>, %s: f32, %i: i32) -> (vector<8xf32>, vector<4xf32>, vector<4x4xf32>, vector<4xf32>, f32) {
  %0 = vector.interleave %a, %a : vector<4xf32> -> vector<8xf32>
  %1, %2 = vector.deinterleave %0 : vector<8xf32> -> vector<4xf32>
  %3 = vector.outerproduct %a, %a : vector<4xf32>, vector<4xf32>
  %4 = vector.splat %s : vector<4xf32>
  %5 = vector.extractelement %a[%i : i32] : vector<4xf32>
  return %0, %2, %3, %4, %5 : vector<8xf32>, vector<4xf32>, vector<4x4xf32>, vector<4xf32>, f32
}

// CHECK-LABEL: @affine
// CHECK: %[[C4:.*]] = arith.constant 4 : index
// CHECK: %[[P:.*]] = arith.muli %i, %[[C4]] : index
// CHECK: arith.addi %[[P]], %n : index
// CHECK: arith.floordivsi
// CHECK: arith.minsi
func.func @affine(%i: index, %n: index) -> (index, index) {
  %0 = affine.apply affine_map<(d0)[s0] -> (d0 * 4 + s0)>(%i)[%n]
  %1 = affine.min affine_map<(d0, d1) -> (d0 mod 8, d1)>(%i, %n)
  return %0, %1 : index, index
}

// A constant of the module is memory of the program; the name goes.
// CHECK-NOT: memref.global
// CHECK-LABEL: @constant
// CHECK: arith.constant dense<[1.{{.*}}, 2.{{.*}}]> : vector<2xf32>
// CHECK: memref.alloca() : memref<2xf32>
// CHECK: vector.transfer_write
memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
func.func @constant(%i: index) -> f32 {
  %0 = memref.get_global @table : memref<2xf32>
  %1 = memref.load %0[%i] : memref<2xf32>
  return %1 : f32
}

// What is no short word for others stays.
// CHECK-LABEL: @stays
// CHECK: math.exp %x
// CHECK: vector.broadcast %s
func.func @stays(%x: vector<4xf32>, %s: f32) -> (vector<4xf32>, vector<4xf32>) {
  %0 = math.exp %x : vector<4xf32>
  %1 = vector.broadcast %s : f32 to vector<4xf32>
  return %0, %1 : vector<4xf32>, vector<4xf32>
}

// A load that transposes, of the first RFC; the second RFC's stays.
// CHECK-LABEL: @loads
// CHECK: %[[V:.*]] = xetile.load_tile %t {padding = 1 : i64, l1_hint = #xetile.cache_hint<cached>} : !xetile.tile<8x16xf16> -> vector<8x16xf16>
// CHECK-NEXT: xetile.tile_transpose %[[V]], [1, 0]
// CHECK-NEXT: xetile.load_tile %t : !xetile.tile<8x16xf16> -> vector<8x16xf16>
// CHECK-NEXT: return
func.func @loads(%t: !xetile.tile<8x16xf16>) -> (vector<16x8xf16>, vector<8x16xf16>) {
  %0 = xetile.load_tile %t {transpose = [1, 0], padding = 1, l1_hint = #xetile.cache_hint<cached>} : !xetile.tile<8x16xf16> -> vector<16x8xf16>
  %1 = xetile.load_tile %t : !xetile.tile<8x16xf16> -> vector<8x16xf16>
  return %0, %1 : vector<16x8xf16>, vector<8x16xf16>
}

// The first counter is that of the outermost loop; reductions are carried.
// CHECK-LABEL: @any_order
// CHECK: %[[R:.*]] = scf.for %i = {{.*}} iter_args(%[[A:.*]] = %x) -> (f32) {
// CHECK:   %[[S:.*]] = scf.for %j = {{.*}} iter_args(%[[B:.*]] = %[[A]]) -> (f32) {
// CHECK:     memref.load %m[%i, %j]
// CHECK:     %[[T:.*]] = arith.addf %[[B]]
// CHECK:     scf.yield %[[T]]
// CHECK:   scf.yield %[[S]]
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     memref.store %[[R]]
func.func @any_order(%m: memref<4x8xf32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) init (%x) -> f32 {
    %v = memref.load %m[%i, %j] : memref<4x8xf32>
    scf.reduce(%v : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  scf.forall (%i, %j) in (4, %n) {
    memref.store %r, %m[%i, %j] : memref<4x8xf32>
  }
  return
}

// A region that runs once stands where it stood; a switch is one conditional in
// another.
// CHECK-LABEL: @regions
// CHECK:      %[[S:.*]] = arith.addi %n, %n : index
// CHECK:      %[[TWO:.*]] = arith.cmpi eq, %n
// CHECK:      %[[FIVE:.*]] = arith.cmpi eq, %n
// CHECK:      scf.if %[[TWO]] -> (index) {
// CHECK:        scf.yield %[[S]]
// CHECK:      } else {
// CHECK:        scf.if %[[FIVE]] -> (index) {
// CHECK:      xetile.assert %p, "a {{[{][{]}}b{{[}][}]}}"
// CHECK:      arith.constant 4 : index
// CHECK-NOT:  index.
func.func @regions(%n: index, %p: i1) -> index {
  %s = scf.execute_region -> index {
    %t = index.add %n, %n
    scf.yield %t : index
  }
  %r = scf.index_switch %n -> index
  case 2 {
    scf.yield %s : index
  }
  case 5 {
    %u = index.mul %s, %n
    scf.yield %u : index
  }
  default {
    scf.yield %n : index
  }
  cf.assert %p, "a {b}"
  %four = index.constant 4
  %end = index.add %r, %four
  return %end : index
}

// Products of `linalg` are loops over tiles, copies too; bf16 is added up in f32.
// CHECK-LABEL: @products
// CHECK:       scf.for
// CHECK:       scf.for
// CHECK:       %[[PLACE:.*]] = xetile.init_tile %c
// CHECK:       %[[START:.*]] = arith.extf
// CHECK:       scf.for {{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK:       xetile.tile_mma
// CHECK:       %[[SUM:.*]] = arith.truncf
// CHECK-NEXT:  xetile.store_tile %[[SUM]], %[[PLACE]]
// CHECK-NOT:   linalg
// CHECK:       xetile.load_tile
// CHECK-NEXT:  xetile.init_tile %d
// CHECK-NEXT:  xetile.store_tile
func.func @products(%a: memref<256x64xbf16>, %b: memref<64x512xbf16>, %c: memref<256x512xbf16>, %d: memref<256x512xbf16>) {
  linalg.matmul ins(%a, %b : memref<256x64xbf16>, memref<64x512xbf16>) outs(%c : memref<256x512xbf16>)
  linalg.copy ins(%c : memref<256x512xbf16>) outs(%d : memref<256x512xbf16>)
  func.return
}
