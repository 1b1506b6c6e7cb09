// RUN: xetl-opt %s -p 'convert-block-gemm-to-brgemm{target="avx512_bf16+recording"}' | filecheck %s
// RUN: xetl-opt %s -p 'convert-block-gemm-to-brgemm{target=avx512_bf16}' | filecheck %s --check-prefix=INLINE
// RUN: xetl-opt %s -p 'convert-block-gemm-to-brgemm{target="avx512+recording"},hoist-dispatch,convert-xsmm-to-calls' | filecheck %s --check-prefix=CALLS

#bf16 = #xsmm.plan<dtype = bf16, instruction = dpbf16, compute = bf16, accumulator = f32, k_pack = 2, mr = 8, nr = 32, chunk = 2048, run = 2048, kc = 2048, mc = 64, unroll = 1, sets = 1, lanes = 16, block_m = 16, block_n = 64, is_called = 1>
#f16 = #xsmm.plan<dtype = f16, instruction = fma, compute = f32, accumulator = f32, k_pack = 1, mr = 8, nr = 32, chunk = 1024, run = 1024, kc = 1024, mc = 64, unroll = 1, sets = 1, lanes = 16, block_m = 16, block_n = 64, is_called = 1>
#f32 = #xsmm.plan<dtype = f32, instruction = fma, compute = f32, accumulator = f32, k_pack = 1, mr = 8, nr = 32, chunk = 1024, run = 1024, kc = 1024, mc = 64, unroll = 1, sets = 1, lanes = 16, block_m = 16, block_n = 64, is_called = 1>
#f64 = #xsmm.plan<dtype = f64, instruction = fma, compute = f64, accumulator = f64, k_pack = 1, mr = 8, nr = 16, chunk = 512, run = 512, kc = 512, mc = 64, unroll = 1, sets = 1, lanes = 8, block_m = 16, block_n = 64>
#i8 = #xsmm.plan<dtype = i8, instruction = vnni, compute = i8, accumulator = i32, k_pack = 4, mr = 8, nr = 32, chunk = 4096, run = 4096, kc = 4096, mc = 64, unroll = 1, sets = 1, lanes = 16, block_m = 16, block_n = 64>

// A panel is a batch of k / 32 blocks; rows, leading dimensions and strides are known.
// In bf16 the blocks are pairs of k, and C is f32.
// CHECK-LABEL: @halves
// CHECK:       %[[COUNT:.*]] = arith.divui %k, %{{.*}} : index
// CHECK-NEXT:  %[[BATCH:.*]] = arith.index_cast %[[COUNT]] : index to i64
// CHECK-NEXT:  %[[A:.*]] = memref.reinterpret_cast %a to offset: [0], sizes: [%[[COUNT]], 16, 32], strides: [32, 528, 1]
// CHECK:       scf.for %[[P:.*]] = %{{.*}} to %panels step
// CHECK-NEXT:    %[[SKIP:.*]] = arith.muli %[[P]], %stride : index
// CHECK-NEXT:    %[[AT:.*]] = arith.addi %start, %[[SKIP]] : index
// CHECK-NEXT:    %[[B:.*]] = memref.reinterpret_cast %b to offset: [%[[AT]]], sizes: [%[[COUNT]], 16, 32, 2], strides: [1024, 64, 2, 1]
// CHECK:         %[[C:.*]] = memref.reinterpret_cast %c to offset: [%{{.*}}], sizes: [16, 32], strides: [64, 1]
// CHECK-NEXT:    %[[KERNEL:.*]] = xsmm.brgemm.dispatch [16, 32, 32, 528, 32, 64, 32, 1024] flags = (vnni_b) data_type = bf16_f32
// CHECK-NEXT:    xsmm.brgemm(data_type = bf16_f32, %[[KERNEL]], %[[A]], %[[B]], %[[C]], %[[BATCH]])
// CHECK-NOT:   block_gemm
// INLINE-LABEL: @halves
// INLINE-NEXT:  %zero
// INLINE-NEXT:  "xsmm.block_gemm"
func.func @halves(%a: memref<16x528xbf16>, %b: memref<?xbf16>, %c: memref<16x64xf32>, %k: index, %rows: index, %start: index, %stride: index, %panels: index) {
  %zero = arith.constant 0 : index
  "xsmm.block_gemm"(%a, %zero, %zero, %rows, %k, %b, %start, %stride, %panels, %c) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, plan = #bf16}> : (memref<16x528xbf16>, index, index, index, index, memref<?xbf16>, index, index, index, memref<16x64xf32>) -> ()
  func.return
}

// f16 is computed with in f32.
// CHECK-LABEL: @floats
// CHECK:         xsmm.brgemm.dispatch [16, 32, 32, 272, 32, 64, 32, 1024] flags = (none) data_type = f32
// CALLS-LABEL: @floats
// CALLS:         %[[KERNEL:.*]] = func.call @xsmm_brgemm_dispatch(
// CALLS:         scf.for
// CALLS:           func.call @xsmm_brgemm_invoke(%{{.*}}, %[[KERNEL]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (i64, i64, !llvm.ptr, index, !llvm.ptr, index, !llvm.ptr, index, i64) -> ()
func.func @floats(%a: memref<16x272xf32>, %b: memref<?xf32>, %c: memref<16x64xf32>, %k: index, %rows: index, %start: index, %stride: index, %panels: index) {
  %zero = arith.constant 0 : index
  "xsmm.block_gemm"(%a, %zero, %zero, %rows, %k, %b, %start, %stride, %panels, %c) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, plan = #f16}> : (memref<16x272xf32>, index, index, index, index, memref<?xf32>, index, index, index, memref<16x64xf32>) -> ()
  func.return
}

// Nobody is called on the small stacks of subgroups that wait for each other.
// CHECK-LABEL: @fibers
// CHECK-NOT:   dispatch
// CHECK:       "xsmm.block_gemm"
func.func @fibers(%a: memref<16x272xf32>, %b: memref<?xf32>, %c: memref<16x64xf32>, %k: index, %rows: index, %start: index, %stride: index, %panels: index) {
  %zero = arith.constant 0 : index
  "cpu.fibers"() <{count = 4 : i64}> ({
  ^bb0(%number: index):
    "xsmm.block_gemm"(%a, %zero, %zero, %rows, %k, %b, %start, %stride, %panels, %c) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, plan = #f32}> : (memref<16x272xf32>, index, index, index, index, memref<?xf32>, index, index, index, memref<16x64xf32>) -> ()
  }) : () -> ()
  func.return
}

// Nobody is called for f64 and bytes.
// CHECK-LABEL: @others
// CHECK-NOT:   dispatch
// CHECK:       "xsmm.block_gemm"
// CHECK-NEXT:  "xsmm.block_gemm"
func.func @others(%a: memref<16x272xf64>, %b: memref<?xf64>, %c: memref<16x64xf64>, %d: memref<16x272xi8>, %e: memref<?xi8>, %f: memref<16x64xi32>, %k: index, %rows: index, %start: index, %stride: index, %panels: index) {
  %zero = arith.constant 0 : index
  "xsmm.block_gemm"(%a, %zero, %zero, %rows, %k, %b, %start, %stride, %panels, %c) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, plan = #f64}> : (memref<16x272xf64>, index, index, index, index, memref<?xf64>, index, index, index, memref<16x64xf64>) -> ()
  "xsmm.block_gemm"(%d, %zero, %zero, %rows, %k, %e, %start, %stride, %panels, %f) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, plan = #i8}> : (memref<16x272xi8>, index, index, index, index, memref<?xi8>, index, index, index, memref<16x64xi32>) -> ()
  func.return
}
