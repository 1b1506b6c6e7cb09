// error: X0702 3:8 a memref or a 64-bit address, found i32
func.func @f(%a: i32, %n: index) {
  %t = xetile.init_tile %a[0, 0], [%n, %n], [%n, 1] : i32 -> !xetile.tile<16x16xf32>
  return
}
