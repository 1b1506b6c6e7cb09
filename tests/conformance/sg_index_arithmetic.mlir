// The `index` dialect and `arith` on index mixed, casts between them, remainders of both signs.
// launch: k (4, 3, 2) (1)
// O: 24x8 i64 zeros
// expect O = np.array([[b % 4, b // 4 % 3, b // 12, (b - 5) // 3, -((5 - b) // 3), (b - 5) % 4, b * 2 - 7, max(b, 9) + min(b, 3)] for b in range(24)])
gpu.module @m {
  gpu.func @k(%O: memref<24x8xi64>) kernel {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %z = gpu.block_id z
    %dx = gpu.grid_dim x
    %dy = gpu.grid_dim y
    %zy = index.mul %z, %dy
    %r = index.add %zy, %y
    %rx = arith.muli %r, %dx : index
    %b = index.add %rx, %x
    %c2 = index.constant 2
    %c3 = arith.constant 3 : index
    %c4 = index.constant 4
    %c5 = arith.constant 5 : index
    %c7 = arith.constant 7 : index
    %c9 = index.constant 9
    %f0 = index.remu %b, %dx
    %q = arith.divui %b, %dx : index
    %f1 = arith.remui %q, %dy : index
    %f2 = index.divu %q, %dy
    %m = arith.subi %b, %c5 : index
    %f3 = index.floordivs %m, %c3
    %f4 = arith.ceildivsi %m, %c3 : index
    %i = index.casts %m : index to i64
    %four = arith.constant 4 : i64
    %rem = arith.remsi %i, %four : i64
    %zero = arith.constant 0 : i64
    %neg = arith.cmpi slt, %rem, %zero : i64
    %fixed = arith.addi %rem, %four : i64
    %f5 = arith.select %neg, %fixed, %rem : i64
    %two = index.shl %b, %c2
    %half = index.shru %two, %c2
    %dbl = arith.addi %half, %b : index
    %f6 = index.sub %dbl, %c7
    %hi = index.maxs %b, %c9
    %p = index.cmp slt(%b, %c3)
    %lo = arith.select %p, %b, %c3 : index
    %f7 = arith.addi %hi, %lo : index
    %g0 = arith.index_cast %f0 : index to i64
    %g1 = arith.index_castui %f1 : index to i64
    %g2 = index.castu %f2 : index to i64
    %g3 = arith.index_cast %f3 : index to i64
    %g4 = index.casts %f4 : index to i64
    %g6 = arith.index_cast %f6 : index to i64
    %g7 = arith.index_cast %f7 : index to i64
    %v = vector.from_elements %g0, %g1, %g2, %g3, %g4, %f5, %g6, %g7 : vector<1x8xi64>
    %t = xetile.init_tile %O[%b, 0] : memref<24x8xi64> -> !xetile.tile<1x8xi64>
    xetile.store_tile %v, %t : vector<1x8xi64>, !xetile.tile<1x8xi64>
    gpu.return
  }
}
