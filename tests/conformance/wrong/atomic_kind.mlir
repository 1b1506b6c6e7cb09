// error: X0701 3:26 is no kind of reduction
func.func @f(%t: !xetile.tile<8x16xf32>, %v: vector<8x16xf32>) {
  %0 = xetile.atomic_rmw nand %v, %t : vector<8x16xf32>, !xetile.tile<8x16xf32> -> vector<8x16xf32>
  return
}
