// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s | xetl-opt - | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s

// CHECK-LABEL: @integers
func.func @integers(%a: index, %b: index, %v: vector<4x8xi32>) {
  // CHECK: arith.addi %a, %b : index
  %0 = arith.addi %a, %b : index
  // CHECK: arith.subi %a, %b overflow<nsw,nuw> : index
  %1 = arith.subi %a, %b overflow<nsw, nuw> : index
  %2 = arith.muli %v, %v : vector<4x8xi32>
  %3 = arith.ceildivsi %a, %b : index
  %4 = arith.floordivsi %a, %b : index
  %5 = arith.divsi %a, %b : index
  %6 = arith.divui %a, %b : index
  %7 = arith.remsi %a, %b : index
  %8 = arith.remui %a, %b : index
  %9 = arith.ceildivui %a, %b : index
  %10 = arith.andi %v, %v : vector<4x8xi32>
  %11 = arith.ori %v, %v : vector<4x8xi32>
  %12 = arith.xori %v, %v : vector<4x8xi32>
  %13 = arith.maxsi %a, %b : index
  %14 = arith.maxui %a, %b : index
  %15 = arith.minsi %a, %b : index
  %16 = arith.minui %a, %b : index
  %17 = arith.shli %v, %v : vector<4x8xi32>
  %18 = arith.shrsi %v, %v : vector<4x8xi32>
  %19 = arith.shrui %v, %v : vector<4x8xi32>
  // A comparison of vectors gives a vector of i1.
  // CHECK: arith.cmpi sle, %v, %v : vector<4x8xi32>
  %20 = arith.cmpi sle, %v, %v : vector<4x8xi32>
  // CHECK: arith.select %{{.*}}, %v, %v : vector<4x8xi1>, vector<4x8xi32>
  %21 = arith.select %20, %v, %v : vector<4x8xi1>, vector<4x8xi32>
  %22 = arith.cmpi ult, %a, %b : index
  // CHECK: arith.select %{{.*}}, %v, %v : vector<4x8xi32>
  %23 = arith.select %22, %v, %v : vector<4x8xi32>
  return
}

// CHECK-LABEL: @floats
func.func @floats(%a: f32, %b: f32, %v: vector<4x8xbf16>) {
  // CHECK: arith.addf %a, %b fastmath<contract> : f32
  %0 = arith.addf %a, %b fastmath<contract> : f32
  // CHECK: arith.mulf %v, %v {map = 1 : i64} : vector<4x8xbf16>
  %1 = arith.mulf %v, %v {map = 1} : vector<4x8xbf16>
  %2 = arith.subf %a, %b : f32
  %3 = arith.divf %a, %b : f32
  %4 = arith.remf %v, %v : vector<4x8xbf16>
  %5 = arith.maximumf %a, %b : f32
  %6 = arith.minimumf %a, %b : f32
  %7 = arith.maxnumf %a, %b : f32
  %8 = arith.minnumf %a, %b : f32
  // CHECK: arith.negf %a : f32
  %9 = arith.negf %a : f32
  // CHECK: arith.cmpf ueq, %a, %b fastmath<nnan> : f32
  %10 = arith.cmpf ueq, %a, %b fastmath<nnan> : f32
  return
}

// CHECK-LABEL: @casts
func.func @casts(%i: index, %j: i32, %k: i8, %v: vector<2x2xf16>, %x: vector<2x2xindex>) {
  // CHECK: arith.index_cast %i : index to i64
  %0 = arith.index_cast %i : index to i64
  // CHECK: arith.index_castui %x : vector<2x2xindex> to vector<2x2xi32>
  %1 = arith.index_castui %x : vector<2x2xindex> to vector<2x2xi32>
  %2 = arith.extsi %k : i8 to i32
  %3 = arith.extui %k : i8 to i32
  %4 = arith.trunci %j : i32 to i8
  // CHECK: arith.extf %v : vector<2x2xf16> to vector<2x2xf32>
  %5 = arith.extf %v : vector<2x2xf16> to vector<2x2xf32>
  %6 = arith.truncf %5 : vector<2x2xf32> to vector<2x2xbf16>
  %7 = arith.sitofp %j : i32 to f32
  %8 = arith.uitofp %j : i32 to f32
  %9 = arith.fptosi %7 : f32 to i32
  %10 = arith.fptoui %7 : f32 to i32
  // CHECK: arith.bitcast %v : vector<2x2xf16> to vector<2x2xi16>
  %11 = arith.bitcast %v : vector<2x2xf16> to vector<2x2xi16>
  return
}

// Infinity, NaN with its bits, and the sign of zero all survive.
// CHECK-LABEL: @constants
func.func @constants() {
  // CHECK: arith.constant 5 : index
  %0 = arith.constant 5 : index
  // CHECK: arith.constant true
  %1 = arith.constant true
  // CHECK: arith.constant -1 : i32
  %2 = arith.constant -1 : i32
  // CHECK: arith.constant dense<0xFF800000> : vector<4xf32>
  %3 = arith.constant dense<0xFF800000> : vector<4xf32>
  // CHECK: arith.constant dense<[0.000000e+00, -0.000000e+00, 0x7FC00001]> : vector<3xf32>
  %4 = arith.constant dense<[0.0, -0.0, 0x7FC00001]> : vector<3xf32>
  // CHECK: arith.constant dense<0x7E00> : vector<2x2xf16>
  %5 = arith.constant dense<0x7E00> : vector<2x2xf16>
  // CHECK: arith.constant 0x7f80 : bf16
  %6 = arith.constant 0x7F80 : bf16
  // CHECK: arith.constant dense<true> : vector<4xi1>
  %7 = arith.constant dense<true> : vector<4xi1>
  // CHECK: arith.constant dense<{{\[\[}}1, 2], [3, 4]]> : vector<2x2xi32>
  %8 = arith.constant dense<[[1, 2], [3, 4]]> : vector<2x2xi32>
  // CHECK: arith.constant {a = 1 : i64} 1.000000e-01 : f64
  %9 = arith.constant {a = 1} 0.1 : f64
  return
}
