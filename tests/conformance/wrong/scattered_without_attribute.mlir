// error: X0702 3:8 scattered = true
func.func @f(%a: memref<64xf32>, %i: vector<4x8xindex>) {
  %t = xetile.init_tile %a, %i : memref<64xf32>, vector<4x8xindex> -> !xetile.tile<4x8xf32>
  return
}
