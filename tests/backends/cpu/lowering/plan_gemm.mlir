// RUN: xetl-opt %s -p 'plan-gemm{target=avx512_bf16}' | filecheck %s
// RUN: xetl-opt %s -p 'plan-gemm{target=amx}' | filecheck %s --check-prefix=AMX

// The plan follows from the tile, the type and the caches; what has one keeps it.
// CHECK-LABEL: @products
// CHECK:       "xsmm.brgemm.tile"{{.*}}plan = #xsmm.plan<dtype = bf16, instruction = dpbf16, compute = bf16, accumulator = f32, k_pack = 2, mr = 8, nr = 32, {{.*}}block_m = 64, block_n = 96>
// CHECK:       "xsmm.brgemm.tile"{{.*}}mr = 3,
// AMX-LABEL:   @products
// AMX:         instruction = amx, {{.*}}mr = 32, nr = 32, {{.*}}kc = 512,
func.func @products(%a: vector<64x32xbf16>, %b: vector<32x96xbf16>) {
  %c = "xsmm.brgemm.tile"(%a, %b) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0>}> : (vector<64x32xbf16>, vector<32x96xbf16>) -> vector<64x96xf32>
  %d = "xsmm.brgemm.tile"(%a, %b) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0>, plan = #xsmm.plan<dtype = bf16, instruction = fma, compute = f32, accumulator = f32, k_pack = 1, mr = 3, nr = 16>}> : (vector<64x32xbf16>, vector<32x96xbf16>) -> vector<64x96xf32>
  func.return
}
