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

// Prints and checks are no breakpoints.
// CHECK-LABEL: @prints
// CHECK:       xetile.print "i = {}"(%{{.*}}) : index
func.func @prints(%i: index) {
  xetile.print "i = {}"(%i) : index
  func.return
}
