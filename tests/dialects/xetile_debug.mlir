// RUN: xetl-opt %s --verify-stage xetile | filecheck %s
// RUN: xetl-opt %s | xetl-opt - | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s
// Texts with and without values; scans.

// CHECK: xetile.print "begin"
// CHECK-NEXT: xetile.print "i = {}, v = {:.3f}"(%i, %f) : index, f64
// CHECK-NEXT: xetile.print "{}"(%b) {unsigned = array<i64: 0>} : vector<4xi8>
// CHECK-NEXT: xetile.assert %c, "never"
// CHECK-NEXT: xetile.assert %c, "i is {}"(%i) : index
// CHECK-NEXT: %s = xetile.tile_scan <add>, %v [1] : vector<4x8xf16> -> vector<4x8xf16>
func.func @debug(%i: index, %f: f64, %c: i1, %b: vector<4xi8>, %v: vector<4x8xf16>) {
  xetile.print "begin"
  xetile.print "i = {}, v = {:.3f}"(%i, %f) : index, f64
  xetile.print "{}"(%b) {unsigned = array<i64: 0>} : vector<4xi8>
  xetile.assert %c, "never"
  xetile.assert %c, "i is {}"(%i) : index
  %s = xetile.tile_scan <add>, %v [1] : vector<4x8xf16> -> vector<4x8xf16>
  return
}

// CHECK: xetile.breakpoint {names = []}
// CHECK-NEXT: xetile.breakpoint(%i, %t) {names = ["i", "t"]} : index, !xetile.tile<4x8xf16>
func.func @stop(%i: index, %t: !xetile.tile<4x8xf16>) {
  xetile.breakpoint {names = []}
  xetile.breakpoint(%i, %t) {names = ["i", "t"]} : index, !xetile.tile<4x8xf16>
  return
}
