// RUN: xetl-opt %s -p insert-prefetches{device=bmg} --split-input-file | filecheck %s
// Carried tiles: a step of a subgroup takes 512 cycles of bmg, memory 800: two steps. Two
// of 32 subgroups ask for the same share of both; see share-prefetches.

// CHECK-LABEL: gpu.func @carried(
// CHECK:         %[[STEP:.*]] = arith.constant 32 : index
// CHECK:         xetile.prefetch_tile %{{.*}} : !xetile.tile<256x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [32, 1], sg_data = [16, 32]>>>
// CHECK:         xetile.prefetch_tile %{{.*}} : !xetile.tile<32x256xbf16, #xetile.tile_attr<wg_map = <sg_layout = [4, 8], sg_data = [16, 32]>>>
// CHECK-NOT:     prefetch_tile
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %[[STEP]] iter_args(%[[TA:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK:           xetile.load_tile %[[TA]]
// CHECK:           %[[TWO:.*]] = arith.constant 2 : index
// CHECK:           %[[ON:.*]] = arith.muli %[[TWO]], %[[STEP]]
// CHECK:           %[[THEN:.*]] = arith.addi %[[I]], %[[ON]]
// CHECK:           %[[AHEAD:.*]] = xetile.init_tile %A[%{{.*}}, %[[THEN]]]
// CHECK:           xetile.prefetch_tile %[[AHEAD]] : !xetile.tile<256x32xbf16, #xetile.tile_attr<wg_map = <sg_layout = [32, 1], sg_data = [16, 32]>>>
// CHECK:           xetile.prefetch_tile
// CHECK-NOT:       prefetch_tile
// CHECK:           scf.yield
#a = #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 32]>>
#b = #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 64]>>
#c = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>
gpu.module @m {
  gpu.func @carried(%A: memref<256x512xbf16>, %B: memref<512x256xbf16>, %C: memref<256x256xf32>) kernel attributes {xetile.level = "workgroup", xetile.alias_groups = array<i64: -1, -1, -1>} {
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c512 = arith.constant 512 : index
    %m = gpu.block_id x
    %a = xetile.init_tile %A[%m, 0] : memref<256x512xbf16> -> !xetile.tile<256x32xbf16, #a>
    %b = xetile.init_tile %B[0, 0] : memref<512x256xbf16> -> !xetile.tile<32x256xbf16, #b>
    %zero = arith.constant {map = #c} dense<0.0> : vector<256x256xf32>
    %r:3 = scf.for %i = %c0 to %c512 step %c32 iter_args(%ta = %a, %tb = %b, %acc = %zero) -> (!xetile.tile<256x32xbf16, #a>, !xetile.tile<32x256xbf16, #b>, vector<256x256xf32>) {
      %va = xetile.load_tile %ta : !xetile.tile<256x32xbf16, #a> -> vector<256x32xbf16>
      %vb = xetile.load_tile %tb : !xetile.tile<32x256xbf16, #b> -> vector<32x256xbf16>
      %d = xetile.tile_mma %va, %vb, %acc {wg_map_c = #c} : vector<256x32xbf16>, vector<32x256xbf16>, vector<256x256xf32> -> vector<256x256xf32>
      %na = xetile.update_tile_offset %ta, [0, 32] : !xetile.tile<256x32xbf16, #a>
      %nb = xetile.update_tile_offset %tb, [32, 0] : !xetile.tile<32x256xbf16, #b>
      scf.yield %na, %nb, %d : !xetile.tile<256x32xbf16, #a>, !xetile.tile<32x256xbf16, #b>, vector<256x256xf32>
    } {result_maps = [unit, unit, #c]}
    %t = xetile.init_tile %C[%m, 0] : memref<256x256xf32> -> !xetile.tile<256x256xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 64]>>>
    xetile.store_tile %r#2, %t : vector<256x256xf32>, !xetile.tile<256x256xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 64]>>>
    gpu.return
  }
}

// -----
// Of a subgroup alone; described anew in each step, and changed on its way to the product.
// Such small steps hide little: eight of them are the most that is asked for.

// CHECK-LABEL: gpu.func @described(
// CHECK-COUNT-7: prefetch_tile
// CHECK-NOT:     prefetch_tile
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %[[STEP:.*]] iter_args
// CHECK:           %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK:           %[[ON:.*]] = arith.muli %[[EIGHT]], %[[STEP]]
// CHECK:           %[[THEN:.*]] = arith.addi %[[I]], %[[ON]]
// CHECK:           %[[K:.*]] = arith.muli %[[THEN]], %{{.*}}
// CHECK:           xetile.init_tile %A[0, %[[K]]]
// CHECK:           xetile.prefetch_tile %{{.*}} : !xetile.tile<8x16xi8>
// Not of B: it stays where it is.
// CHECK-NOT:       prefetch_tile
gpu.module @m {
  gpu.func @described(%A: memref<64x?xi8>, %B: memref<16x16xbf16>, %C: memref<8x16xf32>, %n: index) kernel attributes {xetile.level = "subgroup", xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %b = xetile.init_tile %B[0, 0] : memref<16x16xbf16> -> !xetile.tile<16x16xbf16>
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (vector<8x16xf32>) {
      %k = arith.muli %i, %c16 : index
      %a = xetile.init_tile %A[0, %k], [64, %n], [%n, 1] : memref<64x?xi8> -> !xetile.tile<8x16xi8>
      %va = xetile.load_tile %a : !xetile.tile<8x16xi8> -> vector<8x16xi8>
      %wide = arith.sitofp %va : vector<8x16xi8> to vector<8x16xbf16>
      %vb = xetile.load_tile %b : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
      %d = xetile.tile_mma %wide, %vb, %acc : vector<8x16xbf16>, vector<16x16xbf16>, vector<8x16xf32> -> vector<8x16xf32>
      scf.yield %d : vector<8x16xf32>
    }
    %t = xetile.init_tile %C[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    xetile.store_tile %r, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
    gpu.return
  }
}

// -----
// What the kernel writes may be old in a cache; a loop without a product hides nothing.

// CHECK-LABEL: gpu.func @left_alone(
// CHECK-NOT:     prefetch_tile
gpu.module @m {
  gpu.func @left_alone(%A: memref<64x64xbf16>, %B: memref<16x16xbf16>, %C: memref<8x16xf32>) kernel attributes {xetile.level = "subgroup", xetile.alias_groups = array<i64: -1, -1, -1>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %b = xetile.init_tile %B[0, 0] : memref<16x16xbf16> -> !xetile.tile<16x16xbf16>
    %vb = xetile.load_tile %b : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
    scf.for %k = %c0 to %c64 step %c16 {
      %a = xetile.init_tile %A[0, %k] : memref<64x64xbf16> -> !xetile.tile<16x16xbf16>
      %va = xetile.load_tile %a : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
      %d = xetile.tile_mma %va, %vb : vector<16x16xbf16>, vector<16x16xbf16> -> vector<16x16xf32>
      %narrow = arith.truncf %d : vector<16x16xf32> to vector<16x16xbf16>
      xetile.store_tile %narrow, %a : vector<16x16xbf16>, !xetile.tile<16x16xbf16>
    }
    %t = xetile.init_tile %C[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    scf.for %k = %c0 to %c64 step %c16 {
      %a = xetile.init_tile %B[0, %k] : memref<16x16xbf16> -> !xetile.tile<8x16xbf16>
      %va = xetile.load_tile %a : !xetile.tile<8x16xbf16> -> vector<8x16xbf16>
      %wide = arith.extf %va : vector<8x16xbf16> to vector<8x16xf32>
      xetile.store_tile %wide, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
    }
    gpu.return
  }
}

// -----
// The user has said when to ask for what: his prefetch stays the only one.

// CHECK-LABEL: gpu.func @by_hand(
// CHECK-COUNT-1: xetile.prefetch_tile %{{.*}} locality<1>
// CHECK-NOT:     prefetch_tile
gpu.module @m {
  gpu.func @by_hand(%A: memref<64x64xbf16>, %B: memref<64x16xbf16>, %C: memref<16x16xf32>) kernel attributes {xetile.level = "subgroup", xetile.alias_groups = array<i64: -1, -1, -1>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<16x16xf32>
    %r = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %zero) -> (vector<16x16xf32>) {
      %a = xetile.init_tile %A[0, %k] : memref<64x64xbf16> -> !xetile.tile<16x16xbf16>
      %b = xetile.init_tile %B[%k, 0] : memref<64x16xbf16> -> !xetile.tile<16x16xbf16>
      %ahead = xetile.update_tile_offset %a, [0, 16] : !xetile.tile<16x16xbf16>
      xetile.prefetch_tile %ahead locality<1> : !xetile.tile<16x16xbf16>
      %va = xetile.load_tile %a : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
      %vb = xetile.load_tile %b : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
      %d = xetile.tile_mma %va, %vb, %acc : vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xf32> -> vector<16x16xf32>
      scf.yield %d : vector<16x16xf32>
    }
    %t = xetile.init_tile %C[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %r, %t : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }
}
