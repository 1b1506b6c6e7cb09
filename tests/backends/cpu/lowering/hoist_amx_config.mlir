// RUN: xetl-opt %s -p insert-amx-config,hoist-dispatch,hoist-amx-config | filecheck %s --check-prefixes TASK,BOTH
// RUN: xetl-opt %s -p 'insert-amx-config,hoist-dispatch,hoist-amx-config{level=thread}' | filecheck %s --check-prefixes THREAD,BOTH
// Seed 003, the result of "Generating AMX configuration".

!a = memref<32x32x32xbf16, strided<[1024, 32, 1], offset: ?>>
!b = memref<32x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>
!c = memref<32x32xbf16, strided<[1024, 1], offset: ?>>

// BOTH-LABEL:  @entry
// BOTH-DAG:    %[[KERNEL:.*]] = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b, no_reset_tileconfig, no_setup_tileconfig) data_type = bf16
// BOTH-DAG:    %[[SET:.*]] = xsmm.IntelAMXtileConfig.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b, no_reset_tileconfig) data_type = bf16
// BOTH-DAG:    %[[RESET:.*]] = xsmm.IntelAMXtileConfig.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b, no_setup_tileconfig) data_type = bf16
// BOTH:        scf.parallel
// TASK-NEXT:     %[[STATE:.*]] = memref.alloca() : memref<64xi8>
// TASK-NEXT:     "xsmm.IntelAMXtileConfig"(%[[SET]], %[[STATE]]) : (i64, memref<64xi8>) -> ()
// THREAD-NEXT:   "cpu.thread_tiles"(%[[SET]], %[[RESET]]) : (i64, i64) -> ()
// BOTH-NEXT:     scf.for
// BOTH-NEXT:       scf.for
// BOTH-NOT:          AMX
// BOTH:              xsmm.brgemm(data_type = bf16, %[[KERNEL]], %a, %b, %c, %c32_i64)
// BOTH-NEXT:       }
// BOTH-NEXT:     }
// TASK-NEXT:     "xsmm.IntelAMXtileConfig"(%[[RESET]], %[[STATE]]) : (i64, memref<64xi8>) -> ()
// BOTH-NEXT:     scf.reduce
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

// Two products of one shape share a configuration ...
// BOTH-LABEL:  @equal
// BOTH:        scf.parallel
// TASK-COUNT-1:  "xsmm.IntelAMXtileConfig"
// THREAD:        "cpu.thread_tiles"
// BOTH:          scf.for
// BOTH-NOT:        AMX
// BOTH:            xsmm.brgemm
// BOTH-NOT:        AMX
// BOTH:            xsmm.brgemm
// TASK:          "xsmm.IntelAMXtileConfig"
func.func @equal(%a: memref<1x32x32xbf16>, %b: memref<1x16x32x2xbf16>, %c: memref<32x32xbf16>, %n: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    scf.for %u = %c0 to %c8 step %c1 {
      %k0 = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
      xsmm.brgemm(data_type = bf16, %k0, %a, %b, %c, %n) : (i64, memref<1x32x32xbf16>, memref<1x16x32x2xbf16>, memref<32x32xbf16>, i64) -> ()
      %k1 = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
      xsmm.brgemm(data_type = bf16, %k1, %a, %b, %c, %n) : (i64, memref<1x32x32xbf16>, memref<1x16x32x2xbf16>, memref<32x32xbf16>, i64) -> ()
    }
    scf.reduce
  }
  func.return
}

// ... two of different shapes keep their own: hoisted on top of each other, the second
// would be computed with the tiles of the first.
// BOTH-LABEL:  @different
// BOTH:        scf.parallel
// BOTH-NEXT:     scf.for
// BOTH:            "xsmm.IntelAMXtileConfig"
// BOTH-NEXT:       xsmm.brgemm
// BOTH-NEXT:       "xsmm.IntelAMXtileConfig"
// BOTH:            "xsmm.IntelAMXtileConfig"
// BOTH-NEXT:       xsmm.brgemm
// BOTH-NEXT:       "xsmm.IntelAMXtileConfig"
func.func @different(%a: memref<1x32x32xbf16>, %b: memref<1x16x32x2xbf16>, %c: memref<32x32xbf16>, %n: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    scf.for %u = %c0 to %c8 step %c1 {
      %k0 = xsmm.brgemm.dispatch [32, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
      xsmm.brgemm(data_type = bf16, %k0, %a, %b, %c, %n) : (i64, memref<1x32x32xbf16>, memref<1x16x32x2xbf16>, memref<32x32xbf16>, i64) -> ()
      %k1 = xsmm.brgemm.dispatch [16, 32, 32, 32, 32, 1024, 1024, 1024] flags = (vnni_b) data_type = bf16
      xsmm.brgemm(data_type = bf16, %k1, %a, %b, %c, %n) : (i64, memref<1x32x32xbf16>, memref<1x16x32x2xbf16>, memref<32x32xbf16>, i64) -> ()
    }
    scf.reduce
  }
  func.return
}
