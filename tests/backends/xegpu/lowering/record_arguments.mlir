// RUN: xetl-opt %s -p record-arguments --split-input-file | filecheck %s

// Two of the arrays are written.
// CHECK:      builtin.module attributes {xegpu.stored = array<i64: 1, 2>
// Of `%a` the kernel gets rows and their distance, of `%t`, whose columns lie along the
// first dimension, both sizes and one stride; `%n` has 64 bits on the way.
// CHECK-SAME: xegpu.arguments = [
// CHECK-SAME: ["array", array<i64: 0>, array<i64: 0>, array<i64: 0, 1>],
// CHECK-SAME: ["array", array<i64: 0, 1>, array<i64: 1>, array<i64: 1, 0>],
// CHECK-SAME: ["array", array<i64: 0>, array<i64>, array<i64: -1, 0>],
// CHECK-SAME: ["i64", array<i64>, array<i64>, array<i64>],
// CHECK-SAME: ["f64", array<i64>, array<i64>, array<i64>]]
// The kernel stays as it is.
// CHECK:      gpu.func @k(%a: memref<?x8xf32, strided<[?, 1]>>
gpu.module @m {
  gpu.func @k(%a: memref<?x8xf32, strided<[?, 1]>>,
              %t: memref<?x?xf32, strided<[1, ?]>>, %v: memref<?xf32>, %n: i64,
              %x: f64) kernel {
    %c0 = arith.constant 0 : index
    %one = memref.load %a[%c0, %c0] : memref<?x8xf32, strided<[?, 1]>>
    memref.store %one, %t[%c0, %c0] : memref<?x?xf32, strided<[1, ?]>>
    memref.store %one, %v[%c0] : memref<?xf32>
    gpu.return
  }
}


// -----

// Rows of 2002 bytes no message can move: a launch says how far they are apart.
// CHECK:      xegpu.arguments = [["array", array<i64>, array<i64: 0>, array<i64: 0, 1>],
// CHECK-SAME: ["array", array<i64>, array<i64>, array<i64: 0, 1>],
// CHECK-SAME: ["array", array<i64>, array<i64: 0>, array<i64: 0, 1>],
// CHECK-SAME: ["array", array<i64>, array<i64: 0>, array<i64: 0, 1>]]
// CHECK:      gpu.func @odd(%a: memref<8x1001xf16, strided<[?, 1]>>, %b: memref<8x64xf16>,
// CHECK-SAME:   %c: memref<8x1001xtf32, strided<[?, 1]>>,
// CHECK-SAME:   %d: memref<8x33xf8E5M2, strided<[?, 1]>>)
// CHECK:      xetile.init_tile %a[0, 0], [8, 1001], [%{{.*}}, 1]
gpu.module @m {
  gpu.func @odd(%a: memref<8x1001xf16>, %b: memref<8x64xf16>,
                %c: memref<8x1001xtf32>, %d: memref<8x33xf8E5M2>) kernel {
    %s = xetile.init_tile %a[0, 0] : memref<8x1001xf16> -> !xetile.tile<8x16xf16>
    %v = xetile.load_tile %s : !xetile.tile<8x16xf16> -> vector<8x16xf16>
    %t = xetile.init_tile %b[0, 0] : memref<8x64xf16> -> !xetile.tile<8x16xf16>
    xetile.store_tile %v, %t : vector<8x16xf16>, !xetile.tile<8x16xf16>
    gpu.return
  }
}
