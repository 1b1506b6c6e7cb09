// RUN: xetl-opt %s -p convert-xetile-to-vector | filecheck %s

// Tiles are two numbers that the loop carries; a prefetch has no successor.
// CHECK-LABEL: @gemm
// CHECK-NOT:   xetile
// CHECK:       scf.for {{.*}} -> (index, index, index, index, vector<32x32xf32>)
// CHECK:       vector.transfer_read %a{{.*}} vector<32x32xf16>
// CHECK:       vector.transfer_read %b{{.*}} vector<32x32xf16>
// CHECK:       vector.contract {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK:       vector.transfer_write {{.*}} : vector<32x32xf32>, memref<64x64xf32>
func.func @gemm(%a: memref<64x128xf16>, %b: memref<128x64xf16>, %c: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %i = gpu.block_id x
  %zero = arith.constant dense<0.0> : vector<32x32xf32>
  %ta = xetile.init_tile %a[%i, 0] : memref<64x128xf16> -> !xetile.tile<32x32xf16>
  %tb = xetile.init_tile %b[0, 32] : memref<128x64xf16> -> !xetile.tile<32x32xf16>
  %tc = xetile.init_tile %c[%i, 32] : memref<64x64xf32> -> !xetile.tile<32x32xf32>
  %r:3 = scf.for %k = %c0 to %c128 step %c32 iter_args(%x = %ta, %y = %tb, %acc = %zero) -> (!xetile.tile<32x32xf16>, !xetile.tile<32x32xf16>, vector<32x32xf32>) {
    %va = xetile.load_tile %x : !xetile.tile<32x32xf16> -> vector<32x32xf16>
    %vb = xetile.load_tile %y : !xetile.tile<32x32xf16> -> vector<32x32xf16>
    xetile.prefetch_tile %x : !xetile.tile<32x32xf16>
    %d = xetile.tile_mma %va, %vb, %acc : vector<32x32xf16>, vector<32x32xf16>, vector<32x32xf32> -> vector<32x32xf32>
    %x1 = xetile.update_tile_offset %x, [0, 32] : !xetile.tile<32x32xf16>
    %y1 = xetile.update_tile_offset %y, [32, 0] : !xetile.tile<32x32xf16>
    scf.yield %x1, %y1, %d : !xetile.tile<32x32xf16>, !xetile.tile<32x32xf16>, vector<32x32xf32>
  }
  xetile.store_tile %r#2, %tc : vector<32x32xf32>, !xetile.tile<32x32xf32>
  return
}

// Padding is the transfer's; blocks are forgotten; sizes and strides make a view.
// CHECK-LABEL: @loads
// CHECK:       %[[P:.*]] = arith.constant 1.5{{.*}} : f32
// CHECK:       vector.transfer_read %m{{.*}}, %[[P]] : memref<16x16xf32>, vector<8x16xf32>
// CHECK:       memref.reinterpret_cast %n to offset: [{{.*}}], sizes: [%h, 64], strides: [64, 1]
// CHECK:       vector.transfer_read {{.*}} : memref<?x64xf32, strided<[64, 1], offset: ?>>, vector<8x16xf32>
func.func @loads(%m: memref<16x16xf32>, %n: memref<?x?xf32>, %h: index) -> (vector<8x16xf32>, vector<8x16xf32>) {
  %s = xetile.init_tile %m[8, 8] : memref<16x16xf32> -> !xetile.tile<8x16xf32, #xetile.tile_attr<inner_blocks = [8, 8]>>
  %p = xetile.load_tile %s {padding = 1.5 : f32} : !xetile.tile<8x16xf32, #xetile.tile_attr<inner_blocks = [8, 8]>> -> vector<1x2x8x8xf32>
  %v = xetile.tile_unpack %p {inner_blocks = array<i64: 8, 8>} : vector<1x2x8x8xf32> -> vector<8x16xf32>
  %t = xetile.init_tile %n[0, 0], [%h, 64], [64, 1] : memref<?x?xf32> -> !xetile.tile<8x16xf32>
  %w = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  return %v, %w : vector<8x16xf32>, vector<8x16xf32>
}

// Sums of bf16 run in f32 and are rounded once; numbers without sign are made so.
// CHECK-LABEL: @values
// CHECK:       arith.extf %c : vector<8x8xbf16> to vector<8x8xf32>
// CHECK:       vector.contract {{.*}} : vector<8x8xbf16>, vector<8x8xbf16> into vector<8x8xf32>
// CHECK-NEXT:  arith.truncf
// CHECK:       arith.extui %i : vector<8x8xi8> to vector<8x8xi32>
// CHECK:       arith.extsi %i : vector<8x8xi8> to vector<8x8xi32>
// CHECK:       vector.contract {{.*}} into vector<8x8xi32>
// CHECK:       arith.constant dense<-0.0{{.*}}> : vector<8xf32>
// CHECK:       vector.multi_reduction <add>, {{.*}} [1] : vector<8x8xf32> to vector<8xf32>
// CHECK:       vector.shape_cast {{.*}} to vector<8x1xf32>
// CHECK-NEXT:  arith.truncf
// CHECK:       vector.broadcast {{.*}} : vector<8x1xbf16> to vector<8x8xbf16>
// CHECK:       vector.transpose {{.*}}, [1, 0]
// CHECK:       vector.shape_cast {{.*}} to vector<8x2x4xbf16>
// CHECK:       vector.multi_reduction <maximumf>, {{.*}} [2]
func.func @values(%a: vector<8x8xbf16>, %c: vector<8x8xbf16>, %i: vector<8x8xi8>) -> (vector<8x8xbf16>, vector<8x8xi32>, vector<8x8xbf16>, vector<8x2xbf16>) {
  %0 = xetile.tile_mma %a, %a, %c : vector<8x8xbf16>, vector<8x8xbf16>, vector<8x8xbf16> -> vector<8x8xbf16>
  %1 = xetile.tile_mma %i, %i {a_unsigned} : vector<8x8xi8>, vector<8x8xi8> -> vector<8x8xi32>
  %2 = xetile.tile_reduce <add>, %a [1] : vector<8x8xbf16> -> vector<8x1xbf16>
  %3 = xetile.tile_broadcast %2 [1] : vector<8x1xbf16> -> vector<8x8xbf16>
  %4 = xetile.tile_transpose %3, [1, 0] : vector<8x8xbf16> -> vector<8x8xbf16>
  %5 = xetile.tile_reduce <maximumf>, %a [1] {reduction_size = 4 : i64} : vector<8x8xbf16> -> vector<8x2xbf16>
  return %0, %1, %4, %5 : vector<8x8xbf16>, vector<8x8xi32>, vector<8x8xbf16>, vector<8x2xbf16>
}

// An index outside of the base is masked off.
// CHECK-LABEL: @scattered
// CHECK:       memref.dim %m
// CHECK:       arith.cmpi ult, %i
// CHECK:       arith.andi {{.*}}, %k
// CHECK:       vector.gather %m{{.*}} : memref<64xf32>, vector<16xindex>, vector<16xi1>, vector<16xf32> into vector<16xf32>
// CHECK:       vector.scatter %m
func.func @scattered(%m: memref<64xf32>, %i: vector<1x16xindex>, %k: vector<1x16xi1>) {
  %t = xetile.init_tile %m, %i : memref<64xf32>, vector<1x16xindex> -> !xetile.tile<1x16xf32, #xetile.tile_attr<scattered = true>>
  %v = xetile.load_gather %t, %k : !xetile.tile<1x16xf32, #xetile.tile_attr<scattered = true>>, vector<1x16xi1> -> vector<1x16xf32>
  xetile.store_scatter %v, %k, %t : vector<1x16xf32>, vector<1x16xi1>, !xetile.tile<1x16xf32, #xetile.tile_attr<scattered = true>>
  return
}

// A transfer cannot start before its matrix; atomics and precisions have no counterpart.
// CHECK-LABEL: @stays
// CHECK:       xetile.init_tile %m[-1, 0]
// CHECK:       xetile.load_tile
// CHECK:       xetile.init_tile %m[%i, 0]
// CHECK:       xetile.load_tile
// CHECK:       xetile.atomic_rmw_tile
// CHECK:       xetile.tile_mma {{.*}} {precision = "tf32"}
func.func @stays(%m: memref<16x16xf32>, %i: index) -> (vector<8x8xf32>, vector<8x8xf32>) {
  %t = xetile.init_tile %m[-1, 0] : memref<16x16xf32> -> !xetile.tile<8x8xf32>
  %v = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>
  %u = xetile.init_tile %m[%i, 0] : memref<16x16xf32> -> !xetile.tile<8x8xf32>
  %w = xetile.load_tile %u : !xetile.tile<8x8xf32> -> vector<8x8xf32>
  %s = xetile.init_tile %m[0, 0] : memref<16x16xf32> -> !xetile.tile<8x8xf32>
  %x = xetile.atomic_rmw_tile <add> %v, %s : vector<8x8xf32>, !xetile.tile<8x8xf32> -> vector<8x8xf32>
  %y = xetile.tile_mma %v, %w {precision = "tf32"} : vector<8x8xf32>, vector<8x8xf32> -> vector<8x8xf32>
  return %x, %y : vector<8x8xf32>, vector<8x8xf32>
}

// Blocks that something looks at are made.
// CHECK-LABEL: @looked_at
// CHECK:       vector.shape_cast %v : vector<64x32xf32> to vector<4x16x2x16xf32>
// CHECK-NEXT:  vector.transpose {{.*}}, [0, 2, 1, 3]
// CHECK-NEXT:  vector.multi_reduction <add>, {{.*}} [3]
// CHECK:       vector.transpose %p, [0, 2, 1, 3]
// CHECK-NEXT:  vector.shape_cast {{.*}} to vector<64x32xf32>
func.func @looked_at(%v: vector<64x32xf32>, %p: vector<4x2x16x16xf32>, %z: vector<4x2x16xf32>) -> (vector<4x2x16xf32>, vector<64x32xf32>) {
  %q = xetile.tile_pack %v {inner_blocks = array<i64: 16, 16>} : vector<64x32xf32> -> vector<4x2x16x16xf32>
  %r = vector.multi_reduction <add>, %q, %z [3] : vector<4x2x16x16xf32> to vector<4x2x16xf32>
  %u = xetile.tile_unpack %p {inner_blocks = array<i64: 16, 16>} : vector<4x2x16x16xf32> -> vector<64x32xf32>
  return %r, %u : vector<4x2x16xf32>, vector<64x32xf32>
}
