// Layouts by affine_map: those that are linear are strides, which launches check.
// launch: k (1) (1)
// A: 16x32 f32 integers padded
// B: 16x32 f32 integers T
// C: 16x32 f32 zeros padded
// expect C = A + B
#rows = affine_map<(d0, d1) -> (d0 * 40 + d1)>
func.func @k(%A: memref<16x32xf32, #rows>, %B: memref<16x32xf32, affine_map<(d0, d1) -> (d1 * 16 + d0)>>, %C: memref<16x32xf32, affine_map<(i, j) -> (j + 8 * (i * 5))>>) attributes {xetile.level = "subgroup"} {
  %a = xetile.init_tile %A[0, 0] : memref<16x32xf32, #rows> -> !xetile.tile<16x32xf32>
  %v = xetile.load_tile %a : !xetile.tile<16x32xf32> -> vector<16x32xf32>
  %b = xetile.init_tile %B[0, 0] : memref<16x32xf32, strided<[1, 16]>> -> !xetile.tile<16x32xf32, #xetile.tile_attr<order = [0, 1]>>
  %w = xetile.load_tile %b : !xetile.tile<16x32xf32, #xetile.tile_attr<order = [0, 1]>> -> vector<16x32xf32>
  %sum = arith.addf %v, %w : vector<16x32xf32>
  %c = xetile.init_tile %C[0, 0] : memref<16x32xf32, strided<[40, 1]>> -> !xetile.tile<16x32xf32>
  xetile.store_tile %sum, %c : vector<16x32xf32>, !xetile.tile<16x32xf32>
  return
}
