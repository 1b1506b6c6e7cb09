// error: X0702 3:8 has rank 0 or 1, found rank 2
func.func @f(%a: memref<64x64xf32>, %i: vector<4x8xindex>) {
  %t = xetile.init_tile %a, %i : memref<64x64xf32>, vector<4x8xindex> -> !xetile.tile<4x8xf32, #xetile.tile_attr<scattered = true>>
  return
}
