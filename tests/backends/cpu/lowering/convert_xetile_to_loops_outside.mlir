// RUN: xetl-opt %s -p 'plan-gemm{target=avx512_bf16},place-values{target=avx512_bf16},convert-xetile-to-loops{target=avx512_bf16}' --verify-stage=loops | filecheck %s

!matrix = memref<?x?xf32, strided<[?, 1]>>
!tall = !xetile.tile<16x40xf32>

// Rows of a tall tile may lie far outside: row 0 is read for them, behind an empty mask,
// because a load from where no memory is mapped takes long.
// CHECK-LABEL: @may_lie_far_outside
// CHECK:       [[ROW:%[0-9]+]] = arith.select {{%[0-9]+}}, {{%[0-9]+}}, {{%[0-9]+}} : index
// CHECK:       vector.maskedload {{%[0-9]+\[}}[[ROW]],
// CHECK:       vector.maskedstore
// CHECK:       func.return
func.func @may_lie_far_outside(%X: !matrix, %Y: !matrix, %o: index, %n: index, %gx: index, %gy: index, %grid: index) attributes {xetile.alias_groups = array<i64: -1, -1, -1, -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%p) = (%c0) to (%grid) step (%c1) {
    %x = xetile.init_tile %X[0, %o], [%n, %n], [%n, 1] : !matrix -> !tall
    %y = xetile.init_tile %Y[0, %o], [%n, %n], [%n, 1] : !matrix -> !tall
    %v = xetile.load_tile %x : !tall -> vector<16x40xf32>
    xetile.store_tile %v, %y : vector<16x40xf32>, !tall
    scf.reduce
  }
  func.return
}
