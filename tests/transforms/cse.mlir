// RUN: xetl-opt %s -p cse | filecheck %s

// The same sum twice, also with its sides swapped, also inside a loop.
// CHECK-LABEL: @merges
// CHECK-NEXT: %[[S:.*]] = arith.addi %x, %y : index
// CHECK-NEXT: scf.for
// CHECK-NEXT:   memref.store %f, %m[%[[S]], %[[S]]]
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @merges(%x: index, %y: index, %f: f32, %m: memref<?x?xf32>) {
  %a = arith.addi %x, %y : index
  %b = arith.addi %y, %x : index
  scf.for %k = %x to %y step %x {
    %c = arith.addi %x, %y : index
    memref.store %f, %m[%b, %c] : memref<?x?xf32>
  }
  return
}

// A store may lie between two loads: both stay.  Other sides, flags or maps: no match.
// CHECK-LABEL: @keeps
// CHECK-COUNT-2: memref.load
// CHECK-COUNT-2: arith.subi
// CHECK-COUNT-2: arith.addi
// CHECK-COUNT-2: arith.constant dense
func.func @keeps(%x: index, %y: index, %m: memref<?xf32>) {
  %a = memref.load %m[%x] : memref<?xf32>
  %b = memref.load %m[%x] : memref<?xf32>
  %c = arith.subi %x, %y : index
  %d = arith.subi %y, %x : index
  %e = arith.addi %x, %y : index
  %f = arith.addi %x, %y {map = 1} : index
  %g = arith.constant dense<0.0> : vector<4xf32>
  %h = arith.constant dense<-0.0> : vector<4xf32>
  return
}

// Neither branch of an if dominates the other.
// CHECK-LABEL: @siblings
// CHECK-COUNT-2: arith.muli
func.func @siblings(%c: i1, %x: index) -> index {
  %r = scf.if %c -> (index) {
    %a = arith.muli %x, %x : index
    scf.yield %a : index
  } else {
    %b = arith.muli %x, %x : index
    scf.yield %b : index
  }
  return %r : index
}
