// RUN: xetl-opt %s --split-input-file --verify-diagnostics | filecheck %s
// Layouts: every form that is read, the one that is printed, what is refused.

// The usual order is not printed; other names and another sequence of fields are read.
// CHECK-LABEL: @forms
// CHECK: plain = #xetile.layout<sg_layout = [2, 2], sg_data = [32, 128]>
// CHECK-SAME: columns = #xetile.layout<sg_layout = [8, 4], sg_data = [64, 32], order = [0, 1]>
// CHECK-SAME: lanes = #xetile.layout<sg_layout = [8, 4], sg_data = [32, 64], inst_data = [8, 16], lane_layout = [1, 16], lane_data = [1, 1]>
// CHECK-SAME: cube = #xetile.layout<sg_layout = [2, 2, 1], sg_data = [32, 12, 4], order = [1, 0, 2]>
#plain = #xetile.layout<sg_data = [32, 128], sg_layout = [2, 2], order = [1, 0]>
func.func private @forms() attributes {
  plain = #plain,
  columns = #xetile.layout<order = array<i64: 0, 1>, sg_layout = [8, 4], sg_data = [64, 32]>,
  lanes = #xetile.layout<sg_layout = [8, 4], sg_data = [32, 64], inst_data = [8, 16], wi_layout = [1, 16], wi_data = [1, 1]>,
  cube = #xetile.layout<sg_layout = [2, 2, 1], sg_data = [32, 12, 4], order = [1, 0, 2]>
}
// -----
// A tile's map may be one, also as the encoding itself; so may those of a product.
#cols = #xetile.layout<sg_layout = [2, 2], sg_data = [32, 32], order = [0, 1]>
// CHECK-LABEL: @places
// CHECK-SAME: !xetile.tile<64x64xf16, #xetile.tile_attr<wg_map = #xetile.layout<sg_layout = [2, 2], sg_data = [32, 32], order = [0, 1]>>>
// CHECK-SAME: !xetile.tile<64x64xf16, #xetile.tile_attr<wg_map = #xetile.layout<sg_layout = [2, 2], sg_data = [32, 32], order = [0, 1]>>>
func.func @places(%t: !xetile.tile<64x64xf16, #xetile.tile_attr<wg_map = #cols>>, %u: !xetile.tile<64x64xf16, #cols>, %a: vector<64x32xf16>, %b: vector<32x64xf16>) {
  // CHECK: tile_mma {{.*}}wg_map_a = #xetile.layout<{{.*}}>, wg_map_c = #xetile.wg_map<
  %c = xetile.tile_mma %a, %b {wg_map_a = #cols, wg_map_c = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>} : vector<64x32xf16>, vector<32x64xf16> -> vector<64x64xf32>
  // CHECK: tile_transpose {{.*}}map = #xetile.layout<
  %d = xetile.tile_transpose %c, [1, 0] {map = #cols} : vector<64x64xf32> -> vector<64x64xf32>
  // On other ranks than two and its own a map is a hint.
  // CHECK: vector.shape_cast
  %e = vector.shape_cast %d {map = #cols} : vector<64x64xf32> to vector<4x16x64xf32>
  return
}
// -----
// CHECK: xetile.layout needs `sg_data`
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, 2]>}
// -----
// CHECK: unknown parameter `data`
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, 2], data = [8, 8]>}
// -----
// CHECK: `sg_data` must have 2 entries as `sg_layout` has, found [8]
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, 2], sg_data = [8]>}
// -----
// CHECK: entries of `sg_layout` must be positive, found [2, -2]
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, -2], sg_data = [8, 8]>}
// -----
// CHECK: `order` must name each of the 2 dimensions once, found [1, 1]
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, 2], sg_data = [8, 8], order = [1, 1]>}
// -----
// CHECK: `inst_data` 3 does not divide `sg_data` 8 of dimension 0
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, 2], sg_data = [8, 8], inst_data = [3, 8]>}
// -----
// CHECK: `lane_layout` and `lane_data` are given together or not at all
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, 2], sg_data = [8, 16], lane_layout = [1, 16]>}
// -----
// CHECK: `wi_layout` and `lane_layout` are the same
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, 2], sg_data = [8, 16], lane_layout = [1, 16], wi_layout = [1, 16], lane_data = [1, 1]>}
// -----
// Subgroups may share, lanes split what is theirs evenly.
// CHECK: lane_layout * lane_data = 16 * 1 = 16 does not divide `sg_data` 8 of dimension 1
func.func private @f() attributes {map = #xetile.layout<sg_layout = [2, 2], sg_data = [8, 8], lane_layout = [1, 16], lane_data = [1, 1]>}
// -----
// CHECK: layout: sg_layout * sg_data = 2 * 32 = 64 and extent 96 of dimension 0: neither divides the other
func.func @f(%t: !xetile.tile<96x64xf16, #xetile.layout<sg_layout = [2, 2], sg_data = [32, 32], order = [0, 1]>>) {
  return
}
// -----
// CHECK: layout: it has 3 dimensions, the shape [64, 64] 2
func.func @f(%t: !xetile.tile<64x64xf16, #xetile.layout<sg_layout = [2, 2, 1], sg_data = [32, 32, 1]>>) {
  return
}
// -----
// CHECK: `map`: layout: sg_data 48 does not divide extent 64 of dimension 1
func.func @f(%v: vector<64x64xf16>) {
  %w = xetile.tile_transpose %v, [1, 0] {map = #xetile.layout<sg_layout = [1, 1], sg_data = [64, 48]>} : vector<64x64xf16> -> vector<64x64xf16>
  return
}
