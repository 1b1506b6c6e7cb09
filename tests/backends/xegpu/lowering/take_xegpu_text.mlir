// RUN: xetl-opt %s -p take-xegpu-text | filecheck %s

// One array is stored, by a message; four subgroups along x and y.
// CHECK:      builtin.module attributes {xegpu.stored = array<i64: 1>, xegpu.arguments = [
// CHECK:      gpu.func @copied(
// CHECK-SAME: known_block_size = array<i32: 64, 1, 1>
// CHECK-SAME: intel_reqd_sub_group_size = 16 : i32
// CHECK-SAME: xegpu.block_arguments = array<i64>
gpu.module @m {
  gpu.func @copied(%X: memref<8x96xf32>, %Y: memref<8x96xf32>) kernel
      attributes {xetile.subgroups = array<i64: 2, 2, 1>} {
    %c0 = arith.constant 0 : index
    %x = xegpu.create_nd_tdesc %X : memref<8x96xf32> -> !xegpu.tensor_desc<8x16xf32>
    %y = xegpu.create_nd_tdesc %Y : memref<8x96xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %x[%c0, %c0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %y[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
