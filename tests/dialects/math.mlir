// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s

// CHECK-LABEL: @functions
func.func @functions(%a: f32, %v: vector<4x8xf16>, %i: i32) {
  // CHECK: math.exp %v : vector<4x8xf16>
  %0 = math.exp %v : vector<4x8xf16>
  // CHECK: math.rsqrt %a fastmath<fast> : f32
  %1 = math.rsqrt %a fastmath<fast> : f32
  // CHECK: math.fma %a, %a, %a : f32
  %2 = math.fma %a, %a, %a : f32
  // CHECK: math.powf %a, %a : f32
  %3 = math.powf %a, %a : f32
  // CHECK: math.absi %i : i32
  %4 = math.absi %i : i32
  %5 = math.exp2 %v : vector<4x8xf16>
  %6 = math.log %v : vector<4x8xf16>
  %7 = math.log2 %v : vector<4x8xf16>
  %8 = math.sqrt %v : vector<4x8xf16>
  %9 = math.sin %v : vector<4x8xf16>
  %10 = math.cos %v : vector<4x8xf16>
  %11 = math.tanh %v : vector<4x8xf16>
  %12 = math.erf %v : vector<4x8xf16>
  %13 = math.floor %v : vector<4x8xf16>
  %14 = math.ceil %v : vector<4x8xf16>
  %15 = math.roundeven %v : vector<4x8xf16>
  %16 = math.trunc %v : vector<4x8xf16>
  %17 = math.absf %v : vector<4x8xf16>
  %18 = math.log1p %a : f32
  %19 = math.expm1 %a : f32
  %20 = math.atan2 %a, %a : f32
  %21 = math.copysign %a, %a : f32
  %22 = math.round %a : f32
  return
}
