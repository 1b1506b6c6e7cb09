// RUN: xetl-opt %s -p normalize-tiles | filecheck %s

// Offsets, shape and matrix are swapped; what is loaded is transposed behind the load.
// CHECK-LABEL: @load
// CHECK:       %[[M:.*]] = memref.transpose %m (d0, d1) -> (d1, d0) : memref<64x128xf16, strided<[1, 64]>> to memref<128x64xf16, strided<[64, 1]>>
// CHECK:       %[[T:.*]] = xetile.init_tile %[[M]][%j, %i] : {{.*}} -> !xetile.tile<16x32xf16>
// CHECK:       %[[U:.*]] = xetile.update_tile_offset %[[T]], [16, 8]
// CHECK:       %[[V:.*]] = xetile.load_tile %[[U]] {padding = 1.0{{.*}} : f16} : !xetile.tile<16x32xf16> -> vector<16x32xf16>
// CHECK:       xetile.tile_transpose %[[V]], [1, 0] : vector<16x32xf16> -> vector<32x16xf16>
func.func @load(%m: memref<64x128xf16, strided<[1, 64]>>, %i: index, %j: index) -> vector<32x16xf16> {
  %t = xetile.init_tile %m[%i, %j] : memref<64x128xf16, strided<[1, 64]>> -> !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  %u = xetile.update_tile_offset %t, [8, 16] : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  %v = xetile.load_tile %u {padding = 1.0 : f16} : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>> -> vector<32x16xf16>
  func.return %v : vector<32x16xf16>
}

// Sizes and strides that are given are swapped as well; of an address nothing else.
// CHECK-LABEL: @address
// CHECK-NOT:   memref
// CHECK:       xetile.init_tile %p[%j, %i], [%w, %h], [%s, 1] : i64 -> !xetile.tile<16x32xf16>
func.func @address(%p: i64, %i: index, %j: index, %h: index, %w: index, %s: index) {
  %t = xetile.init_tile %p[%i, %j], [%h, %w], [1, %s] : i64 -> !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  xetile.prefetch_tile %t : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  func.return
}

// Leading offsets select the matrix: they stay in front.
// CHECK-LABEL: @batch
// CHECK:       memref.transpose %m (d0, d1, d2) -> (d0, d2, d1)
// CHECK:       xetile.init_tile %{{.*}}[%b, %j, %i]
func.func @batch(%m: memref<4x64x128xf16, strided<[8192, 1, 64]>>, %b: index, %i: index, %j: index) {
  %t = xetile.init_tile %m[%b, %i, %j] : memref<4x64x128xf16, strided<[8192, 1, 64]>> -> !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  xetile.prefetch_tile %t : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  func.return
}

// Stores and atomics take the transposed value; old values are transposed back.
// CHECK-LABEL: @store
// CHECK:       %[[A:.*]] = xetile.tile_transpose %v, [1, 0]
// CHECK:       xetile.store_tile %[[A]], %{{.*}} : vector<16x32xf32>, !xetile.tile<16x32xf32>
// CHECK:       %[[B:.*]] = xetile.tile_transpose %v, [1, 0]
// CHECK:       %[[O:.*]] = xetile.atomic_rmw_tile <add> %[[B]]
// CHECK:       xetile.tile_transpose %[[O]], [1, 0] : vector<16x32xf32> -> vector<32x16xf32>
func.func @store(%m: memref<64x128xf32, strided<[1, 64]>>, %v: vector<32x16xf32>) -> vector<32x16xf32> {
  %t = xetile.init_tile %m[0, 0] : memref<64x128xf32, strided<[1, 64]>> -> !xetile.tile<32x16xf32, #xetile.tile_attr<order = [0, 1]>>
  xetile.store_tile %v, %t : vector<32x16xf32>, !xetile.tile<32x16xf32, #xetile.tile_attr<order = [0, 1]>>
  %o = xetile.atomic_rmw_tile <add> %v, %t : vector<32x16xf32>, !xetile.tile<32x16xf32, #xetile.tile_attr<order = [0, 1]>> -> vector<32x16xf32>
  func.return %o : vector<32x16xf32>
}

// Shared memory too; a loop carries the turned tile.
// CHECK-LABEL: @loop
// CHECK:       memref.transpose {{.*}} to memref<16x32xf32, strided<[32, 1]>, 3 : i64>
// CHECK:       scf.for {{.*}} -> (!xetile.tile<8x32xf32, #xetile.tile_attr<memory_space = 3>>)
// CHECK:       xetile.update_tile_offset %{{.*}}, [8, 0] : !xetile.tile<8x32xf32, #xetile.tile_attr<memory_space = 3>>
func.func @loop(%m: memref<32x16xf32, strided<[1, 32]>, 3>, %n: index) {
  %t = xetile.init_tile %m[0, 0] : memref<32x16xf32, strided<[1, 32]>, 3> -> !xetile.tile<32x8xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>
  %r = scf.for %k = %n to %n step %n iter_args(%c = %t) -> (!xetile.tile<32x8xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>) {
    %u = xetile.update_tile_offset %c, [0, 8] : !xetile.tile<32x8xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>
    scf.yield %u : !xetile.tile<32x8xf32, #xetile.tile_attr<order = [0, 1], memory_space = 3>>
  }
  func.return
}

// A map is turned with the tile, ids and all; the value has the map that was given.
// CHECK-LABEL: @map
// CHECK:       !xetile.tile<16x32xf16, #xetile.tile_attr<wg_map = #xetile.layout<sg_layout = [2, 4], sg_data = [8, 8], order = [0, 1]>>>
// CHECK:       xetile.tile_transpose %{{.*}}, [1, 0] {map = #xetile.wg_map<sg_layout = [4, 2], sg_data = [8, 8]>}
func.func @map(%m: memref<64x128xf16, strided<[1, 64]>>) -> vector<32x16xf16> {
  %t = xetile.init_tile %m[0, 0] : memref<64x128xf16, strided<[1, 64]>> -> !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1], wg_map = <sg_layout = [4, 2], sg_data = [8, 8]>>>
  %v = xetile.load_tile %t : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1], wg_map = <sg_layout = [4, 2], sg_data = [8, 8]>>> -> vector<32x16xf16>
  func.return %v : vector<32x16xf16>
}

// Two transposes are none: the matrix was wanted as it lies in memory.
// CHECK-LABEL: @cancels
// CHECK-NOT:   tile_transpose
// CHECK:       xetile.load_tile
// CHECK-NOT:   tile_transpose
func.func @cancels(%m: memref<64x128xf16, strided<[1, 64]>>) -> vector<16x32xf16> {
  %t = xetile.init_tile %m[0, 0] : memref<64x128xf16, strided<[1, 64]>> -> !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  %v = xetile.load_tile %t : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>> -> vector<32x16xf16>
  %w = xetile.tile_transpose %v, [1, 0] : vector<32x16xf16> -> vector<16x32xf16>
  func.return %w : vector<16x32xf16>
}

// A map that was given for what comes out of the second one is not lost.
// CHECK-LABEL: @keeps_a_map
// CHECK:       xetile.tile_transpose
// CHECK:       xetile.tile_transpose %{{.*}}, [1, 0] {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [4, 32]>}
func.func @keeps_a_map(%v: vector<16x32xf16>) -> vector<16x32xf16> {
  %w = xetile.tile_transpose %v, [1, 0] : vector<16x32xf16> -> vector<32x16xf16>
  %x = xetile.tile_transpose %w, [1, 0] {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [4, 32]>} : vector<32x16xf16> -> vector<16x32xf16>
  func.return %x : vector<16x32xf16>
}

// The vectors of an array lie side by side.
// CHECK-LABEL: @array
// CHECK:       %[[T:.*]] = xetile.init_tile {{.*}} -> !xetile.tile<8x16xf16>
// CHECK:       xetile.load_tile %[[T]] : !xetile.tile<8x16xf16> -> vector<8x16xf16>
// CHECK:       %[[U:.*]] = xetile.update_tile_offset %[[T]], [0, 16] : !xetile.tile<8x16xf16>
// CHECK:       xetile.load_tile %[[U]] : !xetile.tile<8x16xf16> -> vector<8x16xf16>
func.func @array(%m: memref<64x128xf16>) -> (vector<8x16xf16>, vector<8x16xf16>) {
  %t = xetile.init_tile %m[0, 0] : memref<64x128xf16> -> !xetile.tile<8x16xf16, #xetile.tile_attr<array_length = 2>>
  %v:2 = xetile.load_tile %t : !xetile.tile<8x16xf16, #xetile.tile_attr<array_length = 2>> -> vector<8x16xf16>, vector<8x16xf16>
  func.return %v#0, %v#1 : vector<8x16xf16>, vector<8x16xf16>
}

// Blocks are chosen later, for subgroups.
// CHECK-LABEL: @blocks
// CHECK:       xetile.load_tile %{{.*}} : !xetile.tile<32x64xf16> -> vector<32x64xf16>
// CHECK-NOT:   tile_unpack
func.func @blocks(%m: memref<64x128xf16>) -> vector<32x64xf16> {
  %t = xetile.init_tile %m[0, 0] : memref<64x128xf16> -> !xetile.tile<32x64xf16, #xetile.tile_attr<inner_blocks = [8, 16]>>
  %v = xetile.load_tile %t : !xetile.tile<32x64xf16, #xetile.tile_attr<inner_blocks = [8, 16]>> -> vector<4x4x8x16xf16>
  %w = xetile.tile_unpack %v {inner_blocks = array<i64: 8, 16>} : vector<4x4x8x16xf16> -> vector<32x64xf16>
  func.return %w : vector<32x64xf16>
}

// A kernel of subgroups, and scattered tiles, are left alone.
// CHECK-LABEL: @of_subgroups
// CHECK:       order = [0, 1]
func.func @of_subgroups(%m: memref<64x128xf16, strided<[1, 64]>>) attributes {xetile.level = "subgroup"} {
  %t = xetile.init_tile %m[0, 0] : memref<64x128xf16, strided<[1, 64]>> -> !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  xetile.prefetch_tile %t : !xetile.tile<32x16xf16, #xetile.tile_attr<order = [0, 1]>>
  func.return
}

// CHECK-LABEL: @scattered
// CHECK:       !xetile.tile<1x16xf32, #xetile.tile_attr<order = [0, 1], scattered = true>>
func.func @scattered(%m: memref<64xf32>, %i: vector<1x16xindex>, %mask: vector<1x16xi1>) -> vector<1x16xf32> {
  %t = xetile.init_tile %m, %i : memref<64xf32>, vector<1x16xindex> -> !xetile.tile<1x16xf32, #xetile.tile_attr<order = [0, 1], scattered = true>>
  %v = xetile.load_gather %t, %mask : !xetile.tile<1x16xf32, #xetile.tile_attr<order = [0, 1], scattered = true>>, vector<1x16xi1> -> vector<1x16xf32>
  func.return %v : vector<1x16xf32>
}
