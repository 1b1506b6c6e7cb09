// error: X0702 3:8 a scattered tile moves by one vector<8xindex>
func.func @f(%t: !xetile.tile<8xf16, #xetile.tile_attr<scattered = true>>, %i: index) {
  %u = xetile.update_tile_offset %t, [%i] : !xetile.tile<8xf16, #xetile.tile_attr<scattered = true>>
  return
}
