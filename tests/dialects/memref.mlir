// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s | xetl-opt - | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s

// CHECK-LABEL: @memory
func.func @memory(%m: memref<?x?xf32>, %i: index, %f: f32, %b: memref<2048xi8, 3>) {
  // CHECK: memref.load %m[%i, %i] : memref<?x?xf32>
  %0 = memref.load %m[%i, %i] : memref<?x?xf32>
  // CHECK: memref.store %f, %m[%i, %i] : memref<?x?xf32>
  memref.store %f, %m[%i, %i] : memref<?x?xf32>
  // CHECK: memref.alloc() : memref<4x4xf32, 3 : i64>
  %1 = memref.alloc() : memref<4x4xf32, 3>
  // CHECK: memref.alloc(%i) {alignment = 64 : i64} : memref<?x4xf32>
  %2 = memref.alloc(%i) {alignment = 64 : i64} : memref<?x4xf32>
  // CHECK: memref.alloca(%i) : memref<?xi8>
  %3 = memref.alloca(%i) : memref<?xi8>
  memref.dealloc %2 : memref<?x4xf32>
  // CHECK: memref.atomic_rmw addf %f, %m[%i, %i] : (f32, memref<?x?xf32>) -> f32
  %4 = memref.atomic_rmw addf %f, %m[%i, %i] : (f32, memref<?x?xf32>) -> f32
  // CHECK: memref.atomic_rmw maximumf %f, %m[%i, %i] : (f32, memref<?x?xf32>) -> f32
  %max = memref.atomic_rmw maximumf %f, %m[%i, %i] : (f32, memref<?x?xf32>) -> f32
  // CHECK: memref.prefetch %m[%i, %i], read, locality<3>, data : memref<?x?xf32>
  memref.prefetch %m[%i, %i], read, locality<3>, data : memref<?x?xf32>
  // CHECK: memref.prefetch %m[%i, %i], write, locality<0>, instr : memref<?x?xf32>
  memref.prefetch %m[%i, %i], write, locality<0>, instr : memref<?x?xf32>
  // CHECK: memref.dim %m, %i : memref<?x?xf32>
  %5 = memref.dim %m, %i : memref<?x?xf32>
  // CHECK: memref.copy %m, %m : memref<?x?xf32> to memref<?x?xf32>
  memref.copy %m, %m : memref<?x?xf32> to memref<?x?xf32>
  return
}

// CHECK-LABEL: @views
func.func @views(%m: memref<?x?xf32>, %i: index, %b: memref<2048xi8, 3>) {
  // CHECK: memref.extract_strided_metadata %m : memref<?x?xf32> -> memref<f32>, index, index, index, index, index
  %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %m : memref<?x?xf32> -> memref<f32>, index, index, index, index, index
  // CHECK: memref.reinterpret_cast %{{.*}} to offset: [%offset], sizes: [%sizes, 4], strides: [%strides, 1] : memref<f32> to memref<?x4xf32, strided<[?, 1], offset: ?>>
  %0 = memref.reinterpret_cast %base to offset: [%offset], sizes: [%sizes#0, 4], strides: [%strides#0, 1] : memref<f32> to memref<?x4xf32, strided<[?, 1], offset: ?>>
  // CHECK: memref.subview %m[%i, 0] [4, %i] [1, 1] : memref<?x?xf32> to memref<4x?xf32, strided<[?, 1], offset: ?>>
  %1 = memref.subview %m[%i, 0][4, %i][1, 1] : memref<?x?xf32> to memref<4x?xf32, strided<[?, 1], offset: ?>>
  // CHECK: memref.view %b[%i][] : memref<2048xi8, 3 : i64> to memref<16x32xf32, 3 : i64>
  %2 = memref.view %b[%i][] : memref<2048xi8, 3> to memref<16x32xf32, 3>
  // CHECK: memref.cast %m : memref<?x?xf32> to memref<4x?xf32>
  %3 = memref.cast %m : memref<?x?xf32> to memref<4x?xf32>
  // CHECK: memref.transpose %m (d0, d1) -> (d1, d0) : memref<?x?xf32> to memref<?x?xf32, strided<[1, ?]>>
  %4 = memref.transpose %m (d0, d1) -> (d1, d0) : memref<?x?xf32> to memref<?x?xf32, strided<[1, ?]>>
  // CHECK: memref.extract_aligned_pointer_as_index %m : memref<?x?xf32> -> index
  %5 = memref.extract_aligned_pointer_as_index %m : memref<?x?xf32> -> index
  %6 = memref.memory_space_cast %b : memref<2048xi8, 3> to memref<2048xi8>
  return
}

// Named memory, and casts to memory of unknown rank.
// CHECK: memref.global "private" constant @table : memref<2x2xf32> = dense<{{.*}}> {alignment = 64 : i64}
// CHECK: memref.global @outside : memref<4xi8>
// CHECK: memref.global "private" @raw : memref<4xf32> = uninitialized
memref.global "private" constant @table : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]> {alignment = 64 : i64}
memref.global @outside : memref<4xi8>
memref.global "private" @raw : memref<4xf32> = uninitialized
// CHECK: @globals
func.func @globals() -> memref<*xf32> {
  // CHECK: memref.get_global @table : memref<2x2xf32>
  %0 = memref.get_global @table : memref<2x2xf32>
  // CHECK: memref.cast %{{.*}} : memref<2x2xf32> to memref<*xf32>
  %1 = memref.cast %0 : memref<2x2xf32> to memref<*xf32>
  return %1 : memref<*xf32>
}
