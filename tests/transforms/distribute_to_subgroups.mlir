// RUN: xetl-opt %s -p distribute-to-subgroups,canonicalize,cse --verify-stage xetile-sg | filecheck %s

// Two rows and two columns of subgroups, each has one part: where it begins is added.
#c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 16]>
!c = !xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = #c>>
// CHECK-LABEL: gpu.func @one_part
// CHECK:       attributes {xetile.level = "subgroup", xetile.subgroups = array<i64: 2, 2>}
// CHECK:       [[ID:%.+]] = gpu.subgroup_id
// CHECK:       [[RIGHT:%.+]] = arith.remui [[ID]]
// CHECK:       [[DOWN:%.+]] = arith.divui [[ID]]
// CHECK:       [[ROW:%.+]] = arith.muli [[DOWN]]
// CHECK:       [[COLUMN:%.+]] = arith.muli [[RIGHT]]
// CHECK:       [[TILE:%.+]] = xetile.init_tile {{.*}}[[[ROW]], [[COLUMN]]] : memref<64x32xf32> -> !xetile.tile<32x16xf32>
// CHECK:       [[VALUE:%.+]] = xetile.load_tile [[TILE]] {padding = 1.000000e+00 : f32} : {{.*}} -> vector<32x16xf32>
// CHECK:       [[SUM:%.+]] = arith.addf [[VALUE]], [[VALUE]] : vector<32x16xf32>
// CHECK:       xetile.store_tile [[SUM]], [[TILE]]
gpu.module @a { gpu.func @one_part(%a: memref<64x32xf32>) kernel attributes {xetile.level = "workgroup"} {
  %t = xetile.init_tile %a[0, 0] : memref<64x32xf32> -> !c
  %v = xetile.load_tile %t {padding = 1.0 : f32} : !c -> vector<64x32xf32>
  %w = arith.addf %v, %v {map = #c} : vector<64x32xf32>
  xetile.store_tile %w, %t : vector<64x32xf32>, !c
  gpu.return
} }

// Four rows of parts for two rows of subgroups: each takes two, in a loop as well.
#r = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 16]>
!r = !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = #r>>
// CHECK-LABEL: gpu.func @round_robin
// CHECK:       [[FIRST:%.+]] = arith.muli {{.*}} : index
// CHECK:       [[SECOND:%.+]] = arith.addi [[FIRST]], {{.*}} : index
// CHECK:       init_tile {{.*}}[[[FIRST]],
// CHECK:       init_tile {{.*}}[[[SECOND]],
// CHECK:       scf.for {{.*}} -> (vector<8x16xf32>, vector<8x16xf32>)
// CHECK-COUNT-2: arith.addf {{.*}} : vector<8x16xf32>
// CHECK-COUNT-2: xetile.store_tile
gpu.module @b { gpu.func @round_robin(%a: memref<32x32xf32>, %n: index) kernel attributes {xetile.level = "workgroup"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = xetile.init_tile %a[0, 0] : memref<32x32xf32> -> !r
  %v = xetile.load_tile %t : !r -> vector<32x32xf32>
  %w = scf.for %i = %c0 to %n step %c1 iter_args(%x = %v) -> (vector<32x32xf32>) {
    %y = arith.addf %x, %v {map = #r} : vector<32x32xf32>
    scf.yield %y : vector<32x32xf32>
  } {result_maps = [#r]}
  xetile.store_tile %w, %t : vector<32x32xf32>, !r
  gpu.return
} }

// More subgroups than parts: all load, the first owner alone stores and counts, and
// the others learn from shared memory what it found.
#w = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 16]>
!w = !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = #w>>
// CHECK-LABEL: gpu.func @shared
// CHECK:       [[SLM:%.+]] = memref.alloc() {{.*}} : memref<{{.*}}, 3 : i64>
// CHECK:       xetile.load_tile
// CHECK:       scf.if [[OWNER:%.+]] -> (vector<32x16xf32>) {
// CHECK:         atomic_rmw_tile
// CHECK:       memref.view [[SLM]]
// CHECK:       gpu.barrier
// CHECK:       xetile.load_tile
// CHECK:       gpu.barrier
// CHECK:       scf.if [[OWNER]] {
// CHECK-NEXT:    xetile.store_tile
gpu.module @c { gpu.func @shared(%a: memref<32x32xf32>, %b: memref<32x32xf32>) kernel attributes {xetile.level = "workgroup"} {
  %t = xetile.init_tile %a[0, 0] : memref<32x32xf32> -> !w
  %u = xetile.init_tile %b[0, 0] : memref<32x32xf32> -> !w
  %v = xetile.load_tile %t : !w -> vector<32x32xf32>
  %o = xetile.atomic_rmw_tile <add> %v, %u : vector<32x32xf32>, !w -> vector<32x32xf32>
  xetile.store_tile %o, %t : vector<32x32xf32>, !w
  gpu.return
} }

// A comes in two parts along K, which are joined; B is everybody's: two products for
// the two parts of C, and nothing moves.
#a = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 16]>
#b = #xetile.wg_map<sg_layout = [4, 1], sg_data = [32, 16]>
#d = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 16]>
!a = !xetile.tile<32x32xf16, #xetile.tile_attr<wg_map = #a>>
!b = !xetile.tile<32x32xf16, #xetile.tile_attr<wg_map = #b>>
!d = !xetile.tile<32x32xf32, #xetile.tile_attr<wg_map = #d>>
// CHECK-LABEL: gpu.func @products
// CHECK-NOT:   gpu.barrier
// CHECK:       [[A:%.+]] = vector.insert_strided_slice {{.*}} {offsets = [0 : i64, 16 : i64]{{.*}} into vector<8x32xf16>
// CHECK:       [[C:%.+]] = xetile.tile_mma [[A]], {{.*}} : vector<8x32xf16>, vector<32x16xf16> -> vector<8x16xf32>
// CHECK:       [[D:%.+]] = xetile.tile_mma [[A]], {{.*}}
// CHECK:       xetile.store_tile [[C]]
// CHECK:       xetile.store_tile [[D]]
gpu.module @d { gpu.func @products(%a: memref<32x32xf16>, %c: memref<32x32xf32>) kernel attributes {xetile.level = "workgroup"} {
  %ta = xetile.init_tile %a[0, 0] : memref<32x32xf16> -> !a
  %tb = xetile.init_tile %a[0, 0] : memref<32x32xf16> -> !b
  %tc = xetile.init_tile %c[0, 0] : memref<32x32xf32> -> !d
  %x = xetile.load_tile %ta : !a -> vector<32x32xf16>
  %y = xetile.load_tile %tb : !b -> vector<32x32xf16>
  %z = xetile.tile_mma %x, %y {wg_map_c = #d} : vector<32x32xf16>, vector<32x32xf16> -> vector<32x32xf32>
  xetile.store_tile %z, %tc : vector<32x32xf32>, !d
  gpu.return
} }

// A row of indices is counted from where a part begins; nothing is exchanged.
#i = #xetile.wg_map<sg_layout = [1, 4], sg_data = [1, 8]>
!i = !xetile.tile<1x32xi32, #xetile.tile_attr<wg_map = #i>>
// CHECK-LABEL: gpu.func @indices
// CHECK:       [[START:%.+]] = arith.muli
// CHECK:       [[STEP:%.+]] = vector.step : vector<8xindex>
// CHECK:       [[STARTS:%.+]] = vector.broadcast [[START]] : index to vector<8xindex>
// CHECK:       [[SUM:%.+]] = arith.addi [[STEP]], [[STARTS]]
// CHECK-NOT:   gpu.barrier
gpu.module @e { gpu.func @indices(%a: memref<1x32xi32>) kernel attributes {xetile.level = "workgroup"} {
  %t = xetile.init_tile %a[0, 0] : memref<1x32xi32> -> !i
  %s = vector.step : vector<32xindex>
  %n = arith.index_cast %s : vector<32xindex> to vector<32xi32>
  %v = vector.shape_cast %n {map = #i} : vector<32xi32> to vector<1x32xi32>
  xetile.store_tile %v, %t : vector<1x32xi32>, !i
  gpu.return
} }

// A kernel at subgroup level already says what each of them does.
// CHECK-LABEL: gpu.func @of_subgroups
// CHECK-NOT:   gpu.subgroup_id
// CHECK:       xetile.init_tile {{.*}} -> !xetile.tile<32x32xf32>
gpu.module @f { gpu.func @of_subgroups(%a: memref<32x32xf32>) kernel attributes {xetile.level = "subgroup"} {
  %t = xetile.init_tile %a[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32>
  xetile.prefetch_tile %t : !xetile.tile<32x32xf32>
  gpu.return
} }
