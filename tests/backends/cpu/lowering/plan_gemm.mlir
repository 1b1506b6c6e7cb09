// RUN: xetl-opt %s -p 'plan-gemm{target=avx512_bf16}' | filecheck %s
// RUN: xetl-opt %s -p 'plan-gemm{target=amx}' | filecheck %s --check-prefix=AMX

// The plan follows from the tile, the type and the caches; what has one keeps it. The
// micro-kernel is dispatched for the register tile and kc.
// CHECK-LABEL: @products
// CHECK:       xsmm.brgemm.dispatch [8, 32, 2048, 0, 32, 96, 2048, 65536] flags = (vnni_b) data_type = bf16_f32
// CHECK:       xsmm.brgemm.tile{{.*}}plan = #xsmm.plan<dtype = bf16, instruction = dpbf16, compute = bf16, accumulator = f32, k_pack = 2, mr = 8, nr = 32, {{.*}}block_m = 64, block_n = 96>
// CHECK:       %[[KERNEL:.*]] = xsmm.brgemm.dispatch [3, 16, 512, 0, 16, 96, 512, 8192] flags = (none) data_type = f32
// CHECK:       xsmm.brgemm.tile(kernel = %[[KERNEL]]){{.*}}mr = 3,
// AMX-LABEL:   @products
// AMX:         instruction = amx, {{.*}}mr = 32, nr = 32, {{.*}}kc = 512,
func.func @products(%a: vector<64x32xbf16>, %b: vector<32x96xbf16>) {
  %c = xsmm.brgemm.tile %a, %b : vector<64x32xbf16>, vector<32x96xbf16> -> vector<64x96xf32>
  %d = xsmm.brgemm.tile %a, %b {plan = #xsmm.plan<dtype = bf16, instruction = fma, compute = f32, accumulator = f32, k_pack = 1, mr = 3, nr = 16, chunk = 512, run = 512, kc = 512, mc = 63, unroll = 1, sets = 1, lanes = 16, block_m = 64, block_n = 96>} : vector<64x32xbf16>, vector<32x96xbf16> -> vector<64x96xf32>
  func.return
}
