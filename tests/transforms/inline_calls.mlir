// RUN: xetl-opt %s -p inline-calls | filecheck %s

// The inner call first; what nobody calls any more is gone.
// CHECK-LABEL: gpu.func @kernel
// CHECK:       scf.for
// CHECK:         [[TWICE:%.+]] = arith.addf [[X:%.+]], [[X]] : f32
// CHECK-NEXT:    [[FOUR:%.+]] = arith.addf [[TWICE]], [[TWICE]] : f32
// CHECK-NEXT:    memref.store [[FOUR]]
// CHECK-NOT:   func.call
// CHECK-NOT:   func.func @twice
gpu.module @a {
  func.func @twice(%x: f32) -> f32 {
    %y = arith.addf %x, %x : f32
    return %y : f32
  }
  func.func @four_times(%x: f32) -> f32 {
    %y = func.call @twice(%x) : (f32) -> f32
    %z = func.call @twice(%y) : (f32) -> f32
    return %z : f32
  }
  gpu.func @kernel(%a: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %x = memref.load %a[%i] : memref<8xf32>
      %y = func.call @four_times(%x) : (f32) -> f32
      memref.store %y, %a[%i] : memref<8xf32>
      scf.yield
    }
    gpu.return
  }
}

// A function that calls itself stays, and so does one that nobody ever called.
// CHECK-LABEL: func.func @forever
// CHECK:       func.call @forever
// CHECK:       func.func @unused
// CHECK:       gpu.func @starts
// CHECK:       func.call @forever
gpu.module @b {
  func.func @forever(%x: f32) -> f32 {
    %y = func.call @forever(%x) : (f32) -> f32
    return %y : f32
  }
  func.func @unused(%x: f32) -> f32 {
    return %x : f32
  }
  gpu.func @starts(%a: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = memref.load %a[%c0] : memref<8xf32>
    %y = func.call @forever(%x) : (f32) -> f32
    memref.store %y, %a[%c0] : memref<8xf32>
    gpu.return
  }
}
