// RUN: xetl-opt %s -p drop-spare-kernel --split-input-file | filecheck %s
// No array is moved by messages: nothing to choose at the launch, the kernel stays.

// CHECK-LABEL: gpu.module @on_a_gpu
// CHECK:       gpu.func @k(
// CHECK-NOT:   gpu.func @k_unaligned
builtin.module attributes {xetile.device = "bmg"} {
  gpu.module @on_a_gpu {
    gpu.func @k(%X: memref<64x64xf32>) kernel attributes {xegpu.block_arguments = array<i64>} {
      gpu.return
    }
    gpu.func @k_unaligned(%X: memref<64x64xf32>) kernel attributes {xegpu.no_blocks} {
      gpu.return
    }
  }
}

// -----
// Where messages are emulated the twin is the one that is built quickly.

// CHECK-LABEL: gpu.module @emulated
// CHECK-NOT:   gpu.func @k(
// CHECK:       gpu.func @k_unaligned
builtin.module attributes {xetile.device = "opencl"} {
  gpu.module @emulated {
    gpu.func @k(%X: memref<64x64xf32>) kernel attributes {xegpu.block_arguments = array<i64>} {
      gpu.return
    }
    gpu.func @k_unaligned(%X: memref<64x64xf32>) kernel attributes {xegpu.no_blocks} {
      gpu.return
    }
  }
}

// -----
// An array may be moved by messages: the launch chooses.

// CHECK-LABEL: gpu.module @both
// CHECK:       gpu.func @k(
// CHECK:       gpu.func @k_unaligned
builtin.module attributes {xetile.device = "opencl"} {
  gpu.module @both {
    gpu.func @k(%X: memref<64x64xf32>) kernel attributes {xegpu.block_arguments = array<i64: 0>} {
      gpu.return
    }
    gpu.func @k_unaligned(%X: memref<64x64xf32>) kernel attributes {xegpu.no_blocks} {
      gpu.return
    }
  }
}

// -----
// It has no twin.

// CHECK-LABEL: gpu.module @alone
// CHECK:       gpu.func @k(
builtin.module attributes {xetile.device = "opencl"} {
  gpu.module @alone {
    gpu.func @k(%X: memref<64x64xf32>) kernel {
      gpu.return
    }
  }
}
