// error: X0702 3:8 a base of unknown shape needs 2 sizes, found 0
func.func @f(%a: memref<?x?xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<?x?xf16> -> !xetile.tile<16x16xf16>
  return
}
