// RUN: xetl-opt %s -p narrow-scalar-floats | filecheck %s

// A number of the launch, a constant, arithmetic, what loops carry: all f32. Casts to
// and from f32 are gone.
// CHECK-LABEL: @numbers
// CHECK-SAME:  %x: f32
// CHECK:       %half = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:  %y = arith.mulf %x, %half : f32
// CHECK-NEXT:  %z = scf.for {{.*}} iter_args(%c = %y) -> (f32) {
// CHECK-NEXT:    %d = arith.addf %c, %half : f32
// CHECK-NEXT:    scf.yield %d : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  %w = math.exp %z : f32
// CHECK-NEXT:  vector.broadcast %w : f32 to vector<8x16xf32>
// What f32 has no room for is infinite.
// CHECK:       arith.constant 0x7f800000 : f32
// Integers become f32, and narrower floats are widened to it.
// CHECK:       arith.sitofp %n : i64 to f32
// CHECK-NEXT:  arith.extf %h : f16 to f32
// CHECK-NEXT:  arith.truncf %w : f32 to f16
gpu.module @m {
  gpu.func @numbers(%x: f64, %n: i64, %h: f16) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %half = arith.constant 0.5 : f64
    %y = arith.mulf %x, %half : f64
    %z = scf.for %i = %c0 to %c4 step %c1 iter_args(%c = %y) -> (f64) {
      %d = arith.addf %c, %half : f64
      scf.yield %d : f64
    }
    %w = math.exp %z : f64
    %r = arith.truncf %w : f64 to f32
    %v = vector.broadcast %r : f32 to vector<8x16xf32>
    %large = arith.constant 1.0e+300 : f64
    %f = arith.sitofp %n : i64 to f64
    %e = arith.extf %h : f16 to f64
    %b = arith.truncf %w : f64 to f16
    gpu.return
  }

  // Nothing of f64: it stays as it is.
  // CHECK-LABEL: @left_alone
  // CHECK-NEXT:    arith.addf %x, %x : f32
  // CHECK-NEXT:    gpu.return
  gpu.func @left_alone(%x: f32) kernel {
    %y = arith.addf %x, %x : f32
    gpu.return
  }
}
