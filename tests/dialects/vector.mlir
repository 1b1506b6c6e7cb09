// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s | xetl-opt - | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s

// CHECK-LABEL: @shapes
func.func @shapes(%f: f32, %v: vector<4x8xf32>, %i: index) {
  // CHECK: vector.broadcast %f : f32 to vector<4x8xf32>
  %0 = vector.broadcast %f : f32 to vector<4x8xf32>
  // CHECK: vector.shape_cast %v : vector<4x8xf32> to vector<32xf32>
  %1 = vector.shape_cast %v : vector<4x8xf32> to vector<32xf32>
  // CHECK: vector.step : vector<8xindex>
  %2 = vector.step : vector<8xindex>
  // CHECK: vector.extract %v[1, %i] : f32 from vector<4x8xf32>
  %3 = vector.extract %v[1, %i] : f32 from vector<4x8xf32>
  // CHECK: vector.extract %v[1] : vector<8xf32> from vector<4x8xf32>
  %4 = vector.extract %v[1] : vector<8xf32> from vector<4x8xf32>
  // CHECK: vector.insert %f, %v[%i, 2] : f32 into vector<4x8xf32>
  %5 = vector.insert %f, %v[%i, 2] : f32 into vector<4x8xf32>
  // CHECK: vector.transpose %v, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  %6 = vector.transpose %v, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  // CHECK: vector.extract_strided_slice %v {offsets = [1 : i64, 0 : i64], sizes = [2 : i64, 4 : i64], strides = [1 : i64, 1 : i64]} : vector<4x8xf32> to vector<2x4xf32>
  %7 = vector.extract_strided_slice %v {offsets = [1, 0], sizes = [2, 4], strides = [1, 1]} : vector<4x8xf32> to vector<2x4xf32>
  // CHECK: vector.insert_strided_slice %{{.*}}, %v {offsets = [0 : i64, 4 : i64], strides = [1 : i64, 1 : i64]} : vector<2x4xf32> into vector<4x8xf32>
  %8 = vector.insert_strided_slice %7, %v {offsets = [0, 4], strides = [1, 1]} : vector<2x4xf32> into vector<4x8xf32>
  // CHECK: vector.bitcast %v : vector<4x8xf32> to vector<4x16xf16>
  %9 = vector.bitcast %v : vector<4x8xf32> to vector<4x16xf16>
  // CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 9, 1] : vector<8xf32>, vector<8xf32>
  %10 = vector.shuffle %4, %4 [0, 9, 1] : vector<8xf32>, vector<8xf32>
  // CHECK: vector.from_elements %f, %f : vector<2xf32>
  %11 = vector.from_elements %f, %f : vector<2xf32>
  return
}

// CHECK-LABEL: @memory
func.func @memory(%m: memref<?x?xf32>, %i: index, %v: vector<8xf32>, %k: vector<8xi1>, %x: vector<8xindex>, %f: f32) {
  // CHECK: vector.load %m[%i, %i] : memref<?x?xf32>, vector<8xf32>
  %0 = vector.load %m[%i, %i] : memref<?x?xf32>, vector<8xf32>
  // CHECK: vector.store %v, %m[%i, %i] : memref<?x?xf32>, vector<8xf32>
  vector.store %v, %m[%i, %i] : memref<?x?xf32>, vector<8xf32>
  // CHECK: vector.maskedload %m[%i, %i], %k, %v : memref<?x?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  %1 = vector.maskedload %m[%i, %i], %k, %v : memref<?x?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  // CHECK: vector.maskedstore %m[%i, %i], %k, %v : memref<?x?xf32>, vector<8xi1>, vector<8xf32>
  vector.maskedstore %m[%i, %i], %k, %v : memref<?x?xf32>, vector<8xi1>, vector<8xf32>
  // CHECK: vector.gather %m[%i, %i][%x], %k, %v : memref<?x?xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  %2 = vector.gather %m[%i, %i][%x], %k, %v : memref<?x?xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  // CHECK: vector.scatter %m[%i, %i][%x], %k, %v : memref<?x?xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32>
  vector.scatter %m[%i, %i][%x], %k, %v : memref<?x?xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32>
  // CHECK: vector.transfer_read %m[%i, %i], %f : memref<?x?xf32>, vector<4x8xf32>
  %3 = vector.transfer_read %m[%i, %i], %f : memref<?x?xf32>, vector<4x8xf32>
  // CHECK: vector.transfer_read %m[%i, %i], %f, %k {in_bounds = [true]} : memref<?x?xf32>, vector<8xf32>
  %4 = vector.transfer_read %m[%i, %i], %f, %k {in_bounds = [true]} : memref<?x?xf32>, vector<8xf32>
  // CHECK: vector.transfer_write %{{.*}}, %m[%i, %i] {in_bounds = [true, false]} : vector<4x8xf32>, memref<?x?xf32>
  vector.transfer_write %3, %m[%i, %i] {in_bounds = [true, false]} : vector<4x8xf32>, memref<?x?xf32>
  return
}

// CHECK-LABEL: @sums
func.func @sums(%v: vector<4x8xf32>, %r: vector<8xf32>, %f: f32, %c: vector<4x4xf32>, %i: index) {
  // CHECK: vector.reduction <add>, %r : vector<8xf32> into f32
  %0 = vector.reduction <add>, %r : vector<8xf32> into f32
  // CHECK: vector.reduction <maximumf>, %r, %f fastmath<nnan> : vector<8xf32> into f32
  %1 = vector.reduction <maximumf>, %r, %f fastmath<nnan> : vector<8xf32> into f32
  // CHECK: vector.multi_reduction <add>, %v, %r [0] : vector<4x8xf32> to vector<8xf32>
  %2 = vector.multi_reduction <add>, %v, %r [0] : vector<4x8xf32> to vector<8xf32>
  // CHECK: vector.multi_reduction <mul>, %v, %f [0, 1] : vector<4x8xf32> to f32
  %3 = vector.multi_reduction <mul>, %v, %f [0, 1] : vector<4x8xf32> to f32
  // CHECK: vector.fma %r, %r, %r : vector<8xf32>
  %4 = vector.fma %r, %r, %r : vector<8xf32>
  // CHECK: vector.contract {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %v, %v, %c : vector<4x8xf32>, vector<4x8xf32> into vector<4x4xf32>
  %5 = vector.contract {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %v, %v, %c : vector<4x8xf32>, vector<4x8xf32> into vector<4x4xf32>
  // CHECK: vector.create_mask %i, %i : vector<4x8xi1>
  %6 = vector.create_mask %i, %i : vector<4x8xi1>
  // CHECK: vector.constant_mask [3, 2] : vector<4x8xi1>
  %7 = vector.constant_mask [3, 2] : vector<4x8xi1>
  return
}
