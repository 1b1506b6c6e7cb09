// error: X0702 6:8 order [1, 0] needs stride 1 in dimension 1
func.func @f(%a: memref<?x?xf16>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index

  %t = xetile.init_tile %a[0, 0], [%c64, %c64], [%c1, %c64] : memref<?x?xf16> -> !xetile.tile<16x16xf16>
  return
}
