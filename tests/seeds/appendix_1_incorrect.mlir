// RUN: xetl-opt %s --split-input-file --verify-diagnostics | filecheck %s
// XeTile RFC (seed 001), appendix 1, "Incorrect lowering": order against layout.

// CHECK: order [1, 0] needs stride 1 in dimension 1, but the base has stride 1024 there
func.func @f(%0: memref<1024x1024xf16, affine_map<(d0, d1) -> (d1, d0)>>) {
  %t = xetile.init_tile %0[0, 0] : memref<1024x1024xf16, affine_map<(d0, d1) -> (d1, d0)>> -> !xetile.tile<64x32xf16, #xetile.tile_attr<order = [1, 0]>>
  return
}
// -----
// CHECK: order [1, 0] needs stride 1 in dimension 1, but the base has stride 1024 there
func.func @f(%0: memref<1024x1024xf16, affine_map<(d0, d1) -> (d1, d0)>>) {
  %t = xetile.init_tile %0[0, 0] : memref<1024x1024xf16, affine_map<(d0, d1) -> (d1, d0)>> -> !xetile.tile<64x32xf16>
  return
}
// -----
// CHECK: order [0, 1] needs stride 1 in dimension 0, but the base has stride 1024 there
func.func @f(%0: memref<1024x1024xf16>) {
  %t = xetile.init_tile %0[0, 0] : memref<1024x1024xf16> -> !xetile.tile<64x32xf16, #xetile.tile_attr<order = [0, 1]>>
  return
}
