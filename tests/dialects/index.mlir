// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s

// CHECK-LABEL: @numbers
func.func @numbers(%a: index, %b: index) -> i1 {
  // CHECK: index.constant 5
  %0 = index.constant 5
  // CHECK: index.add %a, %b
  %1 = index.add %a, %b
  %2 = index.mul %a, %b
  %3 = index.sub %a, %b
  %4 = index.divs %a, %b
  %5 = index.divu %a, %b
  %6 = index.ceildivs %a, %b
  %7 = index.remu %a, %b
  %8 = index.maxs %a, %b
  %9 = index.shl %a, %b
  %10 = index.and %a, %b
  // CHECK: index.casts %a : index to i32
  %11 = index.casts %a : index to i32
  %12 = index.castu %11 : i32 to index
  // CHECK: index.cmp slt(%a, %b)
  %13 = index.cmp slt(%a, %b)
  // CHECK: index.bool.constant true
  %14 = index.bool.constant true
  return %13 : i1
}
