// error: X0702 3:8 does not combine elements of type f32
func.func @f(%t: !xetile.tile<8x16xf32>, %v: vector<8x16xf32>) {
  %0 = xetile.atomic_rmw andi %v, %t : vector<8x16xf32>, !xetile.tile<8x16xf32> -> vector<8x16xf32>
  return
}
