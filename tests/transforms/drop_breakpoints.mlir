// RUN: xetl-opt %s -p drop-breakpoints | filecheck %s

// A breakpoint goes; the value it would have shown stays for its other readers.
// CHECK-LABEL: @stops
// CHECK-NOT:   breakpoint
// CHECK:       %[[SUM:.*]] = arith.addi
// CHECK:       return %[[SUM]]
func.func @stops(%i: index) -> index {
  %s = arith.addi %i, %i : index
  xetile.breakpoint(%s) {names = ["s"]} : index
  func.return %s : index
}

// What is assumed is not asked, what is asserted is.
// CHECK-LABEL: @promises
// CHECK-NOT:   assumed
// CHECK:       xetile.assert %{{.*}}, "asked"
func.func @promises(%c: i1) {
  xetile.assert %c, "promised" {assumed}
  xetile.assert %c, "asked"
  func.return
}

// Prints and checks are no breakpoints.
// CHECK-LABEL: @prints
// CHECK:       xetile.print "i = {}"(%{{.*}}) : index
func.func @prints(%i: index) {
  xetile.print "i = {}"(%i) : index
  func.return
}
