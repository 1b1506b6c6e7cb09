// RUN: xetl-opt %s -p 'pack-operands,raise-to-brgemm,convert-forall-to-parallel,tile-parallel-loops{sizes=4,8},insert-amx-config,hoist-dispatch,hoist-amx-config,convert-xsmm-to-calls,canonicalize,cse' | filecheck %s
// All of seed 003: from a matrix product to calls, tiles being configured once a task.

// CHECK-DAG:   func.func private @xsmm_intel_amx_tile_config_invoke(i64, i64, !llvm.ptr, index)
// CHECK-DAG:   func.func private @xsmm_brgemm_invoke(i64, i64, !llvm.ptr, index, !llvm.ptr, index, !llvm.ptr, index, i64)
// CHECK-DAG:   func.func private @xsmm_brgemm_dispatch(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> i64
// CHECK-DAG:   func.func private @xsmm_intel_amx_tile_config_dispatch(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> i64
// CHECK:       func.func @entry(%a: memref<1024x1024xbf16>, %b: memref<1024x1024xbf16>, %c: memref<1024x1024xbf16>)
// CHECK:       %[[KERNEL:.*]] = func.call @xsmm_brgemm_dispatch(
// CHECK:       %[[SET:.*]] = func.call @xsmm_intel_amx_tile_config_dispatch(
// CHECK:       %[[RESET:.*]] = func.call @xsmm_intel_amx_tile_config_dispatch(
// CHECK:       memref.alloc() {alignment = 64 : i64} : memref<32x32x32x32xbf16>
// CHECK:       linalg.copy
// CHECK:       memref.alloc() {alignment = 64 : i64} : memref<32x32x16x32x2xbf16>
// CHECK:       linalg.transpose
// CHECK:       scf.parallel
// CHECK-NEXT:    memref.alloca() : memref<64xi8>
// CHECK:         func.call @xsmm_intel_amx_tile_config_invoke(%{{.*}}, %[[SET]],
// CHECK-NEXT:    scf.for
// CHECK:           scf.for
// CHECK:             func.call @xsmm_brgemm_invoke(%{{.*}}, %[[KERNEL]],
// CHECK:         func.call @xsmm_intel_amx_tile_config_invoke(%{{.*}}, %[[RESET]],
// CHECK-NEXT:    scf.reduce
// CHECK-NOT:   xsmm.
func.func @entry(%a: memref<1024x1024xbf16>, %b: memref<1024x1024xbf16>, %c: memref<1024x1024xbf16>) {
  linalg.matmul ins(%a, %b : memref<1024x1024xbf16>, memref<1024x1024xbf16>) outs(%c : memref<1024x1024xbf16>)
  func.return
}
