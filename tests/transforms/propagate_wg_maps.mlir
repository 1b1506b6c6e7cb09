// RUN: xetl-opt %s -p propagate-wg-maps --verify-stage xetile-mapped | filecheck %s
// Maps as the RFC derives them; [8, 4] and [32, 64] are its sg_layout and sg_data.

#c = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>

// A product: all of K for the rows of C, and for its columns; a loop carries the maps to
// the tiles outside; the zero that it starts from has the map of C.
// CHECK-LABEL: @product
// CHECK:       arith.constant {map = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>}
// CHECK:       xetile.init_tile %a{{.*}} -> !xetile.tile<256x32xf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 32]>>>
// CHECK:       xetile.init_tile %b{{.*}} -> !xetile.tile<32x256xf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 64]>>>
// CHECK:       xetile.tile_mma {{.*}}wg_map_a = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 32]>, wg_map_b = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>
// CHECK:       {result_maps = [unit, unit, #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>]}
// CHECK:       xetile.init_tile %d{{.*}} -> !xetile.tile<256x256xf32, #xetile.tile_attr<wg_map = <sg_layout = [8, 4], sg_data = [32, 64]>>>
// CHECK-NOT:   tile_conv_layout
func.func @product(%a: memref<512x512xf16>, %b: memref<512x512xf16>, %d: memref<512x512xf32>, %n: index, %s: index) {
  %zero = arith.constant dense<0.0> : vector<256x256xf32>
  %ta = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<256x32xf16>
  %tb = xetile.init_tile %b[0, 0] : memref<512x512xf16> -> !xetile.tile<32x256xf16>
  %r:3 = scf.for %k = %n to %n step %s iter_args(%t1 = %ta, %t2 = %tb, %acc = %zero) -> (!xetile.tile<256x32xf16>, !xetile.tile<32x256xf16>, vector<256x256xf32>) {
    %va = xetile.load_tile %t1 : !xetile.tile<256x32xf16> -> vector<256x32xf16>
    %vb = xetile.load_tile %t2 : !xetile.tile<32x256xf16> -> vector<32x256xf16>
    %m = xetile.tile_mma %va, %vb, %acc {wg_map_c = #c} : vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32> -> vector<256x256xf32>
    %n1 = xetile.update_tile_offset %t1, [0, 32] : !xetile.tile<256x32xf16>
    %n2 = xetile.update_tile_offset %t2, [32, 0] : !xetile.tile<32x256xf16>
    scf.yield %n1, %n2, %m : !xetile.tile<256x32xf16>, !xetile.tile<32x256xf16>, vector<256x256xf32>
  }
  %td = xetile.init_tile %d[0, 0] : memref<512x512xf32> -> !xetile.tile<256x256xf32>
  xetile.store_tile %r#2, %td : vector<256x256xf32>, !xetile.tile<256x256xf32>
  func.return
}

// A reduction: whole rows of the source in one subgroup.
// CHECK-LABEL: @reduction
// CHECK:       !xetile.tile<256x128xf32, #xetile.tile_attr<wg_map = <sg_layout = [32, 1], sg_data = [8, 128]>>>
func.func @reduction(%a: memref<512x512xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<512x512xf32> -> !xetile.tile<256x128xf32>
  %v = xetile.load_tile %t : !xetile.tile<256x128xf32> -> vector<256x128xf32>
  %r = xetile.tile_reduce <add>, %v [1] {map = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 1]>} : vector<256x128xf32> -> vector<256x1xf32>
  func.return
}

// A broadcast: the one column is shared by all subgroups of a row.
// CHECK-LABEL: @broadcast
// CHECK:       !xetile.tile<256x1xf32, #xetile.tile_attr<wg_map = <sg_layout = [16, 1], sg_data = [16, 1]>>>
func.func @broadcast(%a: memref<512x512xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<512x512xf32> -> !xetile.tile<256x1xf32>
  %v = xetile.load_tile %t : !xetile.tile<256x1xf32> -> vector<256x1xf32>
  %r = xetile.tile_broadcast %v [1] {map = #xetile.wg_map<sg_layout = [16, 1], sg_data = [16, 256]>} : vector<256x1xf32> -> vector<256x256xf32>
  func.return
}

// A transpose: everything swapped.  The ids of what feeds it count down the columns: so
// each subgroup loads what it is to have, and nothing is exchanged.
// CHECK-LABEL: @transpose
// CHECK:       !xetile.tile<512x128xf32, #xetile.tile_attr<wg_map = #xetile.layout<sg_layout = [8, 4], sg_data = [64, 32], order = [0, 1]>>>
// CHECK:       math.exp {{.*}} {map = #xetile.layout<sg_layout = [8, 4], sg_data = [64, 32], order = [0, 1]>}
// CHECK:       xetile.tile_transpose {{.*}} {map = #xetile.wg_map<sg_layout = [4, 8], sg_data = [32, 64]>}
func.func @transpose(%a: memref<512x512xf32>, %b: memref<512x512xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<512x512xf32> -> !xetile.tile<512x128xf32>
  %v = xetile.load_tile %t : !xetile.tile<512x128xf32> -> vector<512x128xf32>
  %e = math.exp %v : vector<512x128xf32>
  %r = xetile.tile_transpose %e, [1, 0] {map = #xetile.wg_map<sg_layout = [4, 8], sg_data = [32, 64]>} : vector<512x128xf32> -> vector<128x512xf32>
  %u = xetile.init_tile %b[0, 0] : memref<512x512xf32> -> !xetile.tile<128x512xf32>
  xetile.store_tile %r, %u : vector<128x512xf32>, !xetile.tile<128x512xf32>
  func.return
}

// An explicit map fixes sg_layout and sg_data: which way ids count is chosen so that it
// fits (appendix 2.2), or does not matter (2.3).
// CHECK-LABEL: @transposed_operand
// CHECK:       !xetile.tile<256x32xf16, #xetile.tile_attr<wg_map = #xetile.layout<sg_layout = [4, 8], sg_data = [64, 32], order = [0, 1]>>>
// CHECK:       !xetile.tile<256x32xf16, #xetile.tile_attr<wg_map = <sg_layout = [32, 1], sg_data = [64, 32]>>>
// CHECK-NOT:   tile_conv_layout
// CHECK:       return
func.func @transposed_operand(%a: memref<512x512xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<256x32xf16, #xetile.wg_map<sg_layout = [4, 8], sg_data = [64, 32]>>
  %u = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<256x32xf16, #xetile.wg_map<sg_layout = [32, 1], sg_data = [64, 32]>>
  %w = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<256x32xf16>
  %x = xetile.load_tile %t : !xetile.tile<256x32xf16, #xetile.wg_map<sg_layout = [4, 8], sg_data = [64, 32]>> -> vector<256x32xf16>
  %y = xetile.load_tile %u : !xetile.tile<256x32xf16, #xetile.wg_map<sg_layout = [32, 1], sg_data = [64, 32]>> -> vector<256x32xf16>
  %l = xetile.load_tile %w : !xetile.tile<256x32xf16> -> vector<256x32xf16>
  %xt = xetile.tile_transpose %x, [1, 0] : vector<256x32xf16> -> vector<32x256xf16>
  %yt = xetile.tile_transpose %y, [1, 0] : vector<256x32xf16> -> vector<32x256xf16>
  %c = xetile.tile_mma %l, %xt {wg_map_c = #c} : vector<256x32xf16>, vector<32x256xf16> -> vector<256x256xf32>
  %d = xetile.tile_mma %l, %yt, %c {wg_map_c = #c} : vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32> -> vector<256x256xf32>
  func.return
}

// Elementwise operations and casts: one map for all, back to the loads and on to the
// store; a constant that is wanted with two maps is made twice.
// CHECK-LABEL: @elementwise
// CHECK:       arith.constant {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>}
// CHECK:       arith.constant {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>}
// CHECK:       !xetile.tile<64x64xf16, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [32, 32]>>>
// CHECK:       arith.extf {{.*}} {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>}
// CHECK:       arith.cmpf olt, {{.*}} {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>}
// CHECK:       arith.select {{.*}} {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>}
func.func @elementwise(%a: memref<64x64xf16>, %b: memref<64x64xf32>, %n: f32) {
  %one = arith.constant dense<1.0> : vector<64x64xf32>
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf16> -> !xetile.tile<64x64xf16>
  %v = xetile.load_tile %t : !xetile.tile<64x64xf16> -> vector<64x64xf16>
  %e = arith.extf %v : vector<64x64xf16> to vector<64x64xf32>
  %s = vector.broadcast %n : f32 to vector<64x64xf32>
  %c = arith.cmpf olt, %e, %s : vector<64x64xf32>
  %r = arith.select %c, %one, %e : vector<64x64xi1>, vector<64x64xf32>
  %u = xetile.init_tile %b[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>
  xetile.store_tile %r, %u : vector<64x64xf32>, !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>
  %w = xetile.init_tile %b[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>>
  xetile.store_tile %one, %w : vector<64x64xf32>, !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>>
  func.return
}

// A conversion says what it gives, and where its source comes from.
// CHECK-LABEL: @conversion
// CHECK:       xetile.tile_conv_layout {{.*}} {map = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>, source_map = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>}
// CHECK:       xetile.tile_reduce <add>, {{.*}} {map = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 1]>}
// CHECK:       !xetile.tile<256x1xf32, #xetile.tile_attr<wg_map = <sg_layout = [32, 1], sg_data = [8, 1]>>>
func.func @conversion(%a: memref<512x512xf32>, %b: memref<512x1xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<512x512xf32> -> !xetile.tile<256x256xf32, #c>
  %v = xetile.load_tile %t : !xetile.tile<256x256xf32, #c> -> vector<256x256xf32>
  %w = xetile.tile_conv_layout %v {map = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>} : vector<256x256xf32>
  %r = xetile.tile_reduce <add>, %w [1] : vector<256x256xf32> -> vector<256x1xf32>
  %u = xetile.init_tile %b[0, 0] : memref<512x1xf32> -> !xetile.tile<256x1xf32>
  xetile.store_tile %r, %u : vector<256x1xf32>, !xetile.tile<256x1xf32>
  func.return
}

// A sum over columns that several subgroups have is no reason to move the values: the
// sums are exchanged.
// CHECK-LABEL: @partial_sums
// CHECK-NOT:   tile_conv_layout
// CHECK:       xetile.tile_reduce <add>, {{.*}} {map = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 1]>}
// CHECK-NOT:   tile_conv_layout
// CHECK:       return
func.func @partial_sums(%a: memref<512x512xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<512x512xf32> -> !xetile.tile<256x256xf32, #c>
  %v = xetile.load_tile %t : !xetile.tile<256x256xf32, #c> -> vector<256x256xf32>
  %r = xetile.tile_reduce <add>, %v [1] : vector<256x256xf32> -> vector<256x1xf32>
  %b = xetile.tile_broadcast %r [1] : vector<256x1xf32> -> vector<256x256xf32>
  %d = arith.subf %v, %b : vector<256x256xf32>
  xetile.store_tile %d, %t : vector<256x256xf32>, !xetile.tile<256x256xf32, #c>
  func.return
}

// Two maps that were given: what is converted is the f16 value behind the loop.
// CHECK-LABEL: @cheapest_place
// CHECK:       scf.for
// CHECK-NOT:   tile_conv_layout
// CHECK:       %[[F:.*]] = arith.truncf
// CHECK:       xetile.tile_conv_layout %[[F]] {map = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>, source_map = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>} : vector<256x256xf16>
func.func @cheapest_place(%a: memref<512x512xf16>, %n: index, %s: index) {
  %zero = arith.constant dense<0.0> : vector<256x256xf32>
  %ta = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<256x256xf16>
  %va = xetile.load_tile %ta : !xetile.tile<256x256xf16> -> vector<256x256xf16>
  %r = scf.for %k = %n to %n step %s iter_args(%acc = %zero) -> (vector<256x256xf32>) {
    %m = xetile.tile_mma %va, %va, %acc {wg_map_c = #c} : vector<256x256xf16>, vector<256x256xf16>, vector<256x256xf32> -> vector<256x256xf32>
    scf.yield %m : vector<256x256xf32>
  }
  %e = math.exp %r : vector<256x256xf32>
  %f = arith.truncf %e : vector<256x256xf32> to vector<256x256xf16>
  %td = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<256x256xf16, #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>>
  xetile.store_tile %f, %td : vector<256x256xf16>, !xetile.tile<256x256xf16, #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>>
  func.return
}

// What comes from memory, by a tile without a map, is loaded twice: not converted.
// CHECK-LABEL: @loads_twice
// CHECK:       xetile.load_tile {{.*}}sg_layout = [2, 2], sg_data = [32, 32]
// CHECK:       xetile.load_tile {{.*}}sg_layout = [2, 2], sg_data = [32, 32], order = [0, 1]
// CHECK-NOT:   tile_conv_layout
// CHECK:       return
func.func @loads_twice(%a: memref<64x64xf32>, %b: memref<64x64xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
  %x = xetile.load_tile %t : !xetile.tile<64x64xf32> -> vector<64x64xf32>
  %y = xetile.tile_transpose %x, [1, 0] : vector<64x64xf32> -> vector<64x64xf32>
  %z = arith.addf %x, %y : vector<64x64xf32>
  %u = xetile.init_tile %b[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>
  xetile.store_tile %z, %u : vector<64x64xf32>, !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>
  func.return
}

// Each use of a tile without a map may have its own; one that is there serves again.
// CHECK-LABEL: @tiles
// CHECK:       %[[R:.*]] = xetile.init_tile {{.*}}sg_layout = [4, 1], sg_data = [16, 64]
// CHECK:       %[[S:.*]] = xetile.init_tile {{.*}}sg_layout = [2, 2], sg_data = [32, 32]
// CHECK:       xetile.load_tile %[[R]]
// CHECK:       xetile.load_tile %[[S]]
// CHECK:       xetile.load_tile %[[R]]
// CHECK:       xetile.store_tile %e, %[[R]]
// CHECK:       xetile.store_tile %f, %[[S]]
// CHECK:       xetile.store_tile %g, %[[R]]
func.func @tiles(%a: memref<64x64xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
  %v = xetile.load_tile %t : !xetile.tile<64x64xf32> -> vector<64x64xf32>
  %w = xetile.load_tile %t : !xetile.tile<64x64xf32> -> vector<64x64xf32>
  %e = math.exp %v {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>} : vector<64x64xf32>
  %f = math.absf %w {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>} : vector<64x64xf32>
  %g = math.exp %w {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>} : vector<64x64xf32>
  xetile.store_tile %e, %t : vector<64x64xf32>, !xetile.tile<64x64xf32>
  xetile.store_tile %f, %t : vector<64x64xf32>, !xetile.tile<64x64xf32>
  xetile.store_tile %g, %t : vector<64x64xf32>, !xetile.tile<64x64xf32>
  func.return
}

// What an if gives, and what a while hands on, has one map in all its places.
// CHECK-LABEL: @control
// CHECK:       %[[R:.*]] = scf.if
// CHECK:       } {result_maps = [#xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>]}
// CHECK:       scf.while
// CHECK:       result_maps = [unit, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>], before_maps = [unit, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>]
func.func @control(%a: memref<64x64xf32>, %c: i1, %n: index) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
  %x = xetile.load_tile %t : !xetile.tile<64x64xf32> -> vector<64x64xf32>
  %r = scf.if %c -> (vector<64x64xf32>) {
    %e = math.exp %x : vector<64x64xf32>
    scf.yield %e : vector<64x64xf32>
  } else {
    scf.yield %x : vector<64x64xf32>
  }
  %w:2 = scf.while (%i = %n, %v = %r) : (index, vector<64x64xf32>) -> (index, vector<64x64xf32>) {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %v : index, vector<64x64xf32>
  } do {
  ^bb0(%j: index, %u: vector<64x64xf32>):
    %s = arith.addf %u, %x : vector<64x64xf32>
    scf.yield %j, %s : index, vector<64x64xf32>
  }
  %o = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>
  xetile.store_tile %w#1, %o : vector<64x64xf32>, !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>
  func.return
}

// One of several regions, too.
// CHECK-LABEL: @regions
// CHECK:       scf.index_switch
// CHECK:       math.exp {{.*}}sg_layout = [2, 2], sg_data = [32, 32]
// CHECK:       math.absf {{.*}}sg_layout = [2, 2], sg_data = [32, 32]
// CHECK-NOT:   tile_conv_layout
// CHECK:       return
func.func @regions(%a: memref<64x64xf32>, %n: index) {
  %o = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
  %x = xetile.load_tile %t : !xetile.tile<64x64xf32> -> vector<64x64xf32>
  %r = scf.index_switch %n -> vector<64x64xf32>
  case 2 {
    %e = math.exp %x : vector<64x64xf32>
    scf.yield %e : vector<64x64xf32>
  }
  default {
    %s = scf.execute_region -> vector<64x64xf32> {
      %f = math.absf %x : vector<64x64xf32>
      scf.yield %f : vector<64x64xf32>
    }
    scf.yield %s : vector<64x64xf32>
  }
  xetile.store_tile %r, %o : vector<64x64xf32>, !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>>
  func.return
}

// Scatter tiles have the map of their indices, masks and values.
// CHECK-LABEL: @scattered
// CHECK:       vector.shape_cast {{.*}}map = #xetile.wg_map<sg_layout = [1, 4], sg_data = [1, 64]>
// CHECK:       xetile.init_tile {{.*}}sg_layout = [1, 4], sg_data = [1, 64]>, scattered = true
// CHECK:       xetile.load_gather {{.*}}sg_layout = [1, 4], sg_data = [1, 64]
// CHECK:       xetile.atomic_rmw_tile {{.*}}sg_layout = [1, 4], sg_data = [1, 64]
func.func @scattered(%a: memref<1024xf32>, %o: memref<1x1024xf32>) {
  %limit = arith.constant dense<200> : vector<1x256xindex>
  %i = vector.step : vector<256xindex>
  %n = vector.shape_cast %i : vector<256xindex> to vector<1x256xindex>
  %m = arith.cmpi slt, %n, %limit : vector<1x256xindex>
  %t = xetile.init_tile %a, %n : memref<1024xf32>, vector<1x256xindex> -> !xetile.tile<1x256xf32, #xetile.tile_attr<scattered = true>>
  %v = xetile.load_gather %t, %m : !xetile.tile<1x256xf32, #xetile.tile_attr<scattered = true>>, vector<1x256xi1> -> vector<1x256xf32>
  %u = xetile.init_tile %o[0, 0] : memref<1x1024xf32> -> !xetile.tile<1x256xf32, #xetile.wg_map<sg_layout = [1, 4], sg_data = [1, 64]>>
  %old = xetile.atomic_rmw_tile <add> %v, %u : vector<1x256xf32>, !xetile.tile<1x256xf32, #xetile.wg_map<sg_layout = [1, 4], sg_data = [1, 64]>> -> vector<1x256xf32>
  func.return
}

// What has no distributed form takes and gives whole values; a scan needs its lines.
// CHECK-LABEL: @whole
// CHECK:       xetile.tile_scan {{.*}}map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>
// CHECK:       xetile.tile_conv_layout {{.*}} {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [64, 64]>, source_map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>}
// CHECK:       xetile.tile_reduce <add>, {{.*}} [0, 1] {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [1, 1]>}
// CHECK:       vector.shape_cast {{.*}} {map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [32, 128]>}
func.func @whole(%a: memref<64x64xf32>, %b: memref<32x128xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>>
  %x = xetile.load_tile %t : !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>> -> vector<64x64xf32>
  %y = xetile.tile_scan <add>, %x [1] : vector<64x64xf32> -> vector<64x64xf32>
  %s = xetile.tile_reduce <add>, %y [0, 1] : vector<64x64xf32> -> vector<1x1xf32>
  %e = vector.extract %s[0, 0] : f32 from vector<1x1xf32>
  %z = vector.shape_cast %y : vector<64x64xf32> to vector<32x128xf32>
  %f = vector.broadcast %e : f32 to vector<32x128xf32>
  %g = arith.addf %z, %f : vector<32x128xf32>
  %u = xetile.init_tile %b[0, 0] : memref<32x128xf32> -> !xetile.tile<32x128xf32>
  xetile.store_tile %g, %u : vector<32x128xf32>, !xetile.tile<32x128xf32>
  func.return
}

// A scan along columns takes them whole, and others share the columns.
// CHECK-LABEL: @columns
// CHECK:       xetile.tile_conv_layout {{.*}} {map = #xetile.wg_map<sg_layout = [1, 4], sg_data = [64, 16]>, source_map = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>}
// CHECK:       xetile.tile_scan {{.*}}map = #xetile.wg_map<sg_layout = [1, 4], sg_data = [64, 16]>
func.func @columns(%a: memref<64x64xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>>
  %x = xetile.load_tile %t : !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>> -> vector<64x64xf32>
  %y = xetile.tile_scan <add>, %x [0] : vector<64x64xf32> -> vector<64x64xf32>
  xetile.store_tile %y, %t : vector<64x64xf32>, !xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>>
  func.return
}

// Nothing is given: the parts of C are 32x64, as many subgroups as that takes.
// CHECK-LABEL: @chosen
// CHECK:       wg_map_c = #xetile.wg_map<sg_layout = [4, 2], sg_data = [32, 64]>
func.func @chosen(%a: memref<512x512xf16>, %b: memref<512x512xf32>) {
  %ta = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<128x32xf16>
  %tb = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<32x128xf16>
  %va = xetile.load_tile %ta : !xetile.tile<128x32xf16> -> vector<128x32xf16>
  %vb = xetile.load_tile %tb : !xetile.tile<32x128xf16> -> vector<32x128xf16>
  %c = xetile.tile_mma %va, %vb : vector<128x32xf16>, vector<32x128xf16> -> vector<128x128xf32>
  %tc = xetile.init_tile %b[0, 0] : memref<512x512xf32> -> !xetile.tile<128x128xf32>
  xetile.store_tile %c, %tc : vector<128x128xf32>, !xetile.tile<128x128xf32>
  func.return
}

// Rows are reduced: each subgroup has whole ones.
// CHECK-LABEL: @chosen_rows
// CHECK:       !xetile.tile<64x512xf32, #xetile.tile_attr<wg_map = <sg_layout = [32, 1], sg_data = [2, 512]>>>
// CHECK-NOT:   tile_conv_layout
func.func @chosen_rows(%a: memref<512x512xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<512x512xf32> -> !xetile.tile<64x512xf32>
  %x = xetile.load_tile %t : !xetile.tile<64x512xf32> -> vector<64x512xf32>
  %m = xetile.tile_reduce <maximumf>, %x [1] : vector<64x512xf32> -> vector<64x1xf32>
  %b = xetile.tile_broadcast %m [1] : vector<64x1xf32> -> vector<64x512xf32>
  %d = arith.subf %x, %b : vector<64x512xf32>
  xetile.store_tile %d, %t : vector<64x512xf32>, !xetile.tile<64x512xf32>
  func.return
}

// The map of a store must not make the product of the loop before it slow.
// CHECK-LABEL: @product_has_its_own
// CHECK:       wg_map_c = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>
// CHECK:       xetile.tile_conv_layout {{.*}} {map = #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>
func.func @product_has_its_own(%a: memref<512x512xf16>, %b: memref<512x512xf32>, %n: index, %s: index) {
  %zero = arith.constant dense<0.0> : vector<256x256xf32>
  %ta = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<256x32xf16>
  %tb = xetile.init_tile %a[0, 0] : memref<512x512xf16> -> !xetile.tile<32x256xf16>
  %r = scf.for %k = %n to %n step %s iter_args(%acc = %zero) -> (vector<256x256xf32>) {
    %va = xetile.load_tile %ta : !xetile.tile<256x32xf16> -> vector<256x32xf16>
    %vb = xetile.load_tile %tb : !xetile.tile<32x256xf16> -> vector<32x256xf16>
    %m = xetile.tile_mma %va, %vb, %acc : vector<256x32xf16>, vector<32x256xf16>, vector<256x256xf32> -> vector<256x256xf32>
    scf.yield %m : vector<256x256xf32>
  }
  %tc = xetile.init_tile %b[0, 0] : memref<512x512xf32> -> !xetile.tile<256x256xf32, #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>>
  xetile.store_tile %r, %tc : vector<256x256xf32>, !xetile.tile<256x256xf32, #xetile.wg_map<sg_layout = [32, 1], sg_data = [8, 256]>>
  func.return
}

// A kernel of subgroups is left alone.
// CHECK-LABEL: @of_subgroups
// CHECK-NOT:   map
// CHECK:       return
func.func @of_subgroups(%a: memref<64x64xf32>) attributes {xetile.level = "subgroup"} {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
  %x = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
  %y = math.exp %x : vector<8x16xf32>
  xetile.store_tile %y, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
  func.return
}
