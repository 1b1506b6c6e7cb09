// RUN: xetl-opt %s -p check-blocks --verify-stage lanes | filecheck %s
// Each message is checked; what lanes move takes any surface.

// CHECK-LABEL: simt.func @copied(
// CHECK:         arith.constant 63 : i64
// CHECK:         arith.andi %base, %{{.*}} : i64
// CHECK:         simt.assert %{{.*}}, "no GPU takes this block message (1 blocks of 8x16, 16 bits, plain): {{.*}}"(%base, %k, %pitch, %m, %x, %x : i64, i64, i64, i64, i64, i64)
// CHECK-NEXT:    %[[V:.*]] = simt.block_load %base, %k, %m, %pitch, %x, %x {
// CHECK:         simt.assert
// CHECK-NEXT:    simt.block_store %[[V]], %base,
// CHECK-NOT:     simt.assert
// CHECK:         simt.block_prefetch %base, %k, %m, %pitch, %x, %x {{.*}}by_lanes
builtin.module {
  simt.func @copied(%base: i64, %m: i64, %k: i64, %pitch: i64, %x: i64, %log: i64) attributes {work_group = array<i64: 16, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64} {
    %v = simt.block_load %base, %k, %m, %pitch, %x, %x {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    simt.block_store %v, %base, %k, %m, %pitch, %x, %x {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi16>
    simt.block_prefetch %base, %k, %m, %pitch, %x, %x {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64, by_lanes}
    simt.return
  }
}
