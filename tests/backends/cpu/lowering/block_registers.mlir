// RUN: xetl-opt %s -p 'block-registers{sizes=8,32,1}' | filecheck %s
// Seed 004, "Motivating IR example". (The seed's reads of subviews lack their layouts.)

#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (m, n)>

// CHECK-LABEL: @brgemm_blocking
// CHECK:       scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NOT:     vector
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT:      %[[VIEW:.*]] = memref.subview %arg2[%[[I]], %[[J]]] [8, 32] [1, 1] : memref<256x256xf32> to memref<8x32xf32, strided<[256, 1], offset: ?>>
// CHECK:           %[[C:.*]] = vector.transfer_read %[[VIEW]][{{.*}}], %cst {in_bounds = [true, true]} : memref<8x32xf32, strided<[256, 1], offset: ?>>, vector<8x32xf32>
// CHECK:           %[[SUM:.*]] = scf.for %[[P:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[OUTER:.*]] = %[[C]]) -> (vector<8x32xf32>) {
// CHECK:             %[[INNER:.*]] = scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ACC:.*]] = %[[OUTER]]) -> (vector<8x32xf32>) {
// CHECK-NEXT:          %[[SUB_A:.*]] = memref.subview %arg0[%[[P]], %[[I]], %[[K]]] [1, 8, 1] [1, 1, 1] : memref<128x256x512xf32> to memref<1x8x1xf32, strided<[131072, 512, 1], offset: ?>>
// CHECK-NEXT:          %[[SUB_B:.*]] = memref.subview %arg1[%[[P]], %[[K]], %[[J]]] [1, 1, 32] [1, 1, 1] : memref<128x512x256xf32> to memref<1x1x32xf32, strided<[131072, 256, 1], offset: ?>>
// CHECK:               %[[A:.*]] = vector.transfer_read %[[SUB_A]]
// CHECK:               %[[B:.*]] = vector.transfer_read %[[SUB_B]]
// CHECK:               %[[NEW:.*]] = vector.contract {{.*}} %[[A]], %[[B]], %[[ACC]] : vector<1x8x1xf32>, vector<1x1x32xf32> into vector<8x32xf32>
// CHECK-NEXT:          scf.yield %[[NEW]] : vector<8x32xf32>
// CHECK:             scf.yield %[[INNER]] : vector<8x32xf32>
// CHECK:           vector.transfer_write %[[SUM]], %[[VIEW]]
// CHECK-NOT:   vector<128x256x512xf32>
func.func @brgemm_blocking(%arg0: memref<128x256x512xf32>, %arg1: memref<128x512x256xf32>, %arg2: memref<256x256xf32>) {
  %c0 = arith.constant 0 : index
  %cst = arith.constant 0.0 : f32
  %0 = vector.transfer_read %arg0[%c0, %c0, %c0], %cst {in_bounds = [true, true, true]} : memref<128x256x512xf32>, vector<128x256x512xf32>
  %1 = vector.transfer_read %arg1[%c0, %c0, %c0], %cst {in_bounds = [true, true, true]} : memref<128x512x256xf32>, vector<128x512x256xf32>
  %2 = vector.transfer_read %arg2[%c0, %c0], %cst {in_bounds = [true, true]} : memref<256x256xf32>, vector<256x256xf32>
  %3 = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["reduction", "parallel", "parallel", "reduction"], kind = #vector.kind<add>} %0, %1, %2 : vector<128x256x512xf32>, vector<128x512x256xf32> into vector<256x256xf32>
  vector.transfer_write %3, %arg2[%c0, %c0] {in_bounds = [true, true]} : vector<256x256xf32>, memref<256x256xf32>
  func.return
}

#x = affine_map<(m, n, k) -> (m, k)>
#y = affine_map<(m, n, k) -> (k, n)>
#z = affine_map<(m, n, k) -> (m, n)>

// Tails are peeled: 20 rows are 8, 8 and 4.
// CHECK-LABEL: @tails
// CHECK:       scf.for %[[I:.*]] =
// CHECK:         vector.contract {{.*}} : vector<8x1xf32>, vector<1x32xf32> into vector<8x32xf32>
// CHECK:         vector.contract {{.*}} : vector<8x1xf32>, vector<1x5xf32> into vector<8x5xf32>
// CHECK:       memref.subview %C[16, 0] [4, 32] [1, 1]
// CHECK:       vector.contract {{.*}} : vector<4x1xf32>, vector<1x32xf32> into vector<4x32xf32>
// CHECK:       memref.subview %C[16, 32] [4, 5] [1, 1]
// CHECK:       vector.contract {{.*}} : vector<4x1xf32>, vector<1x5xf32> into vector<4x5xf32>
func.func @tails(%A: memref<20x9xf32>, %B: memref<9x37xf32>, %C: memref<20x37xf32>) {
  %c0 = arith.constant 0 : index
  %cst = arith.constant 0.0 : f32
  %a = vector.transfer_read %A[%c0, %c0], %cst {in_bounds = [true, true]} : memref<20x9xf32>, vector<20x9xf32>
  %b = vector.transfer_read %B[%c0, %c0], %cst {in_bounds = [true, true]} : memref<9x37xf32>, vector<9x37xf32>
  %c = vector.transfer_read %C[%c0, %c0], %cst {in_bounds = [true, true]} : memref<20x37xf32>, vector<20x37xf32>
  %r = vector.contract {indexing_maps = [#x, #y, #z], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %c : vector<20x9xf32>, vector<9x37xf32> into vector<20x37xf32>
  vector.transfer_write %r, %C[%c0, %c0] {in_bounds = [true, true]} : vector<20x37xf32>, memref<20x37xf32>
  func.return
}

// C is read as A, too: the blocks that are written first would be read again.
// CHECK-LABEL: @square
// CHECK-NOT:   scf.for
// CHECK:       vector.contract {{.*}} : vector<16x16xf32>, vector<16x16xf32> into vector<16x16xf32>
func.func @square(%C: memref<16x16xf32>) {
  %c0 = arith.constant 0 : index
  %cst = arith.constant 0.0 : f32
  %c = vector.transfer_read %C[%c0, %c0], %cst {in_bounds = [true, true]} : memref<16x16xf32>, vector<16x16xf32>
  %r = vector.contract {indexing_maps = [#x, #y, #z], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %c, %c, %c : vector<16x16xf32>, vector<16x16xf32> into vector<16x16xf32>
  vector.transfer_write %r, %C[%c0, %c0] {in_bounds = [true, true]} : vector<16x16xf32>, memref<16x16xf32>
  func.return
}
