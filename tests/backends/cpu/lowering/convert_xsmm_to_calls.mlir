// RUN: xetl-opt %s -p insert-amx-config,hoist-dispatch,hoist-amx-config,convert-xsmm-to-calls,canonicalize,cse | filecheck %s
// Seed 003, "Lowering XSMM operations": names, arguments and flag numbers.

!a = memref<32x32x32xbf16, strided<[1024, 32, 1], offset: ?>>
!b = memref<32x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>
!c = memref<32x32xbf16, strided<[1024, 1], offset: ?>>

// CHECK-DAG:   func.func private @xsmm_intel_amx_tile_config_invoke(i64, i64, !llvm.ptr, index)
// CHECK-DAG:   func.func private @xsmm_brgemm_invoke(i64, i64, !llvm.ptr, index, !llvm.ptr, index, !llvm.ptr, index, i64)
// CHECK-DAG:   func.func private @xsmm_brgemm_dispatch(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> i64
// CHECK-DAG:   func.func private @xsmm_intel_amx_tile_config_dispatch(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> i64
// CHECK:       func.func @entry
// CHECK-DAG:   %c32_i64 = arith.constant 32 : i64
// CHECK-DAG:   %c0 = arith.constant 0 : index
// CHECK-DAG:   %[[BF16:.*]] = arith.constant 2 : i64
// CHECK-DAG:   %[[LD:.*]] = arith.constant 1024 : i64
// CHECK-DAG:   %[[FLAGS:.*]] = arith.constant 2240 : i64
// CHECK:       %[[KERNEL:.*]] = func.call @xsmm_brgemm_dispatch(%[[BF16]], %c32_i64, %c32_i64, %c32_i64, %c32_i64, %c32_i64, %[[LD]], %[[LD]], %[[LD]], %[[FLAGS]])
// CHECK-NEXT:  %[[FLAGS:.*]] = arith.constant 2112 : i64
// CHECK-NEXT:  %[[SET:.*]] = func.call @xsmm_intel_amx_tile_config_dispatch(%[[BF16]], %c32_i64, %c32_i64, %c32_i64, %c32_i64, %c32_i64, %[[LD]], %[[LD]], %[[LD]], %[[FLAGS]])
// CHECK-NEXT:  %[[FLAGS:.*]] = arith.constant 2176 : i64
// CHECK-NEXT:  %[[RESET:.*]] = func.call @xsmm_intel_amx_tile_config_dispatch(%[[BF16]], %c32_i64, %c32_i64, %c32_i64, %c32_i64, %c32_i64, %[[LD]], %[[LD]], %[[LD]], %[[FLAGS]])
// CHECK:       scf.parallel
// CHECK-NEXT:    %[[ALLOCA:.*]] = memref.alloca() : memref<64xi8>
// CHECK-NEXT:    %[[INT:.*]] = memref.extract_aligned_pointer_as_index %[[ALLOCA]] : memref<64xi8> -> index
// CHECK-NEXT:    %[[CAST:.*]] = arith.index_cast %[[INT]] : index to i64
// CHECK-NEXT:    %[[STATE:.*]] = llvm.inttoptr %[[CAST]] : i64 to !llvm.ptr
// CHECK-NEXT:    func.call @xsmm_intel_amx_tile_config_invoke(%[[BF16]], %[[SET]], %[[STATE]], %c0) : (i64, i64, !llvm.ptr, index) -> ()
// CHECK:         %{{.*}}, %[[OFFSET:.*]], %{{.*}} = memref.extract_strided_metadata %a
// CHECK-NEXT:    %[[INT:.*]] = memref.extract_aligned_pointer_as_index %a
// CHECK-NEXT:    %[[CAST:.*]] = arith.index_cast %[[INT]] : index to i64
// CHECK-NEXT:    %[[A:.*]] = llvm.inttoptr %[[CAST]] : i64 to !llvm.ptr
// CHECK:         func.call @xsmm_brgemm_invoke(%[[BF16]], %[[KERNEL]], %[[A]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %c32_i64) : (i64, i64, !llvm.ptr, index, !llvm.ptr, index, !llvm.ptr, index, i64) -> ()
// CHECK:         func.call @xsmm_intel_amx_tile_config_invoke(%[[BF16]], %[[RESET]], %[[STATE]], %c0)
// CHECK-NEXT:    scf.reduce
func.func @entry(%A: memref<32x32x32x32xbf16>, %B: memref<32x32x16x32x2xbf16>, %C: memref<1024x1024xbf16>) {
  %c32_i64 = arith.constant 32 : i64
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%p, %q) = (%c0, %c0) to (%c32, %c32) step (%c4, %c8) {
    scf.for %u = %c0 to %c4 step %c1 {
      scf.for %v = %c0 to %c8 step %c1 {
        %i = arith.addi %u, %p : index
        %j = arith.addi %v, %q : index
        %0 = affine.apply affine_map<(d0) -> (d0 * 32)>(%i)
        %1 = affine.apply affine_map<(d0) -> (d0 * 32)>(%j)
        %a = memref.subview %A[%i, 0, 0, 0] [1, 32, 32, 32] [1, 1, 1, 1] : memref<32x32x32x32xbf16> to !a
        %b = memref.subview %B[%j, 0, 0, 0, 0] [1, 32, 16, 32, 2] [1, 1, 1, 1, 1] : memref<32x32x16x32x2xbf16> to !b
        %c = memref.subview %C[%0, %1] [32, 32] [1, 1] : memref<1024x1024xbf16> to !c
        %k = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
        xsmm.brgemm(data_type = bf16, %k, %a, %b, %c, %c32_i64) : (i64, !a, !b, !c, i64) -> ()
      }
    }
    scf.reduce
  }
  func.return
}

// What a thread holds is set up by whoever runs it: its kernels are the library's now.
// CHECK-LABEL: func.func @a_thread
// CHECK:         %set = func.call @xsmm_intel_amx_tile_config_dispatch
// CHECK:         %reset = func.call @xsmm_intel_amx_tile_config_dispatch
// CHECK:         "cpu.thread_tiles"(%set, %reset) <{library}>
func.func @a_thread(%n: index) {
  %set = xsmm.IntelAMXtileConfig.dispatch [32, 32, 32, 32, 32, 32, 32, 32] flags = (vnni_b, no_reset_tileconfig) data_type = bf16
  %reset = xsmm.IntelAMXtileConfig.dispatch [32, 32, 32, 32, 32, 32, 32, 32] flags = (vnni_b, no_setup_tileconfig) data_type = bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    "cpu.thread_tiles"(%set, %reset) : (i64, i64) -> ()
    scf.reduce
  }
  func.return
}
