// error: X0702 3:8 expected vector<4x8xindex>
func.func @f(%a: memref<64xf32>, %i: vector<4x16xindex>) {
  %t = xetile.init_tile %a, %i : memref<64xf32>, vector<4x16xindex> -> !xetile.tile<4x8xf32, #xetile.tile_attr<scattered = true>>
  return
}
