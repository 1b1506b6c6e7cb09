// RUN: xetl-opt %s -p fold-add-into-mma | filecheck %s

// The product has one reader, which adds: it adds itself.
// CHECK-LABEL: @folds
// CHECK:       %[[D:.*]] = xetile.tile_mma %a, %b, %c
// CHECK-NOT:   arith.addf
// CHECK:       return %[[D]]
func.func @folds(%a: vector<8x4xf32>, %b: vector<4x16xf32>, %c: vector<8x16xf32>) -> vector<8x16xf32> {
  %d = xetile.tile_mma %a, %b : vector<8x4xf32>, vector<4x16xf32> -> vector<8x16xf32>
  %e = arith.addf %d, %c : vector<8x16xf32>
  func.return %e : vector<8x16xf32>
}

// Either side of an integer sum; what is added may come after the product.
// CHECK-LABEL: @integers
// CHECK:       %[[T:.*]] = arith.muli
// CHECK:       xetile.tile_mma %a, %b, %[[T]] {a_unsigned}
// CHECK-NOT:   arith.addi
func.func @integers(%a: vector<8x4xi8>, %b: vector<4x16xi8>, %c: vector<8x16xi32>) -> vector<8x16xi32> {
  %d = xetile.tile_mma %a, %b {a_unsigned} : vector<8x4xi8>, vector<4x16xi8> -> vector<8x16xi32>
  %t = arith.muli %c, %c : vector<8x16xi32>
  %e = arith.addi %t, %d : vector<8x16xi32>
  func.return %e : vector<8x16xi32>
}

// Others read the product too, or it adds already: nothing changes.
// CHECK-LABEL: @keeps
// CHECK:       arith.addf
// CHECK:       arith.addf
func.func @keeps(%a: vector<8x4xf32>, %b: vector<4x16xf32>, %c: vector<8x16xf32>) -> (vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>) {
  %d = xetile.tile_mma %a, %b : vector<8x4xf32>, vector<4x16xf32> -> vector<8x16xf32>
  %e = arith.addf %d, %c : vector<8x16xf32>
  %f = xetile.tile_mma %a, %b, %c : vector<8x4xf32>, vector<4x16xf32>, vector<8x16xf32> -> vector<8x16xf32>
  %g = arith.addf %f, %c : vector<8x16xf32>
  func.return %d, %e, %g : vector<8x16xf32>, vector<8x16xf32>, vector<8x16xf32>
}
