// Tiles out of scf.if, chosen bases, tiles carried by nested loops, arith.remf, select on a scalar.
// launch: k (2) (1)
// A: 16x32 f32 integers
// B: 16x32 f32 integers
// O: 32x32 f32 zeros
// expect O = np.concatenate([A + A + 1.5, B + B])
gpu.module @m {
  gpu.func @k(%A: memref<16x32xf32>, %B: memref<16x32xf32>, %O: memref<32x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %x = gpu.block_id x
    %first = arith.cmpi eq, %x, %c0 : index
    %t = scf.if %first -> (!xetile.tile<16x16xf32>) {
      %a = xetile.init_tile %A[0, 0] : memref<16x32xf32> -> !xetile.tile<16x16xf32>
      scf.yield %a : !xetile.tile<16x16xf32>
    } else {
      %b = xetile.init_tile %B[0, 0] : memref<16x32xf32> -> !xetile.tile<16x16xf32>
      scf.yield %b : !xetile.tile<16x16xf32>
    }
    %row = arith.muli %x, %c16 : index
    %u = xetile.init_tile %O[%row, 0] : memref<32x32xf32> -> !xetile.tile<16x16xf32>
    %seven = arith.constant 7.5 : f32
    %two = arith.constant 2.0 : f32
    %rem = arith.remf %seven, %two : f32
    %none = arith.constant 0.0 : f32
    %add = arith.select %first, %rem, %none : f32
    %addv = vector.broadcast %add : f32 to vector<16x16xf32>
    %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%ti = %t, %ui = %u) -> (!xetile.tile<16x16xf32>, !xetile.tile<16x16xf32>) {
      %z = arith.constant dense<0.0> : vector<16x16xf32>
      %s = scf.for %j = %c0 to %c2 step %c1 iter_args(%acc = %z) -> (vector<16x16xf32>) {
        %v = xetile.load_tile %ti : !xetile.tile<16x16xf32> -> vector<16x16xf32>
        %n = arith.addf %acc, %v : vector<16x16xf32>
        scf.yield %n : vector<16x16xf32>
      }
      %w = arith.addf %s, %addv : vector<16x16xf32>
      %q = arith.select %first, %w, %s : vector<16x16xf32>
      xetile.store_tile %q, %ui : vector<16x16xf32>, !xetile.tile<16x16xf32>
      %tn = xetile.update_tile_offset %ti, [0, 16] : !xetile.tile<16x16xf32>
      %un = xetile.update_tile_offset %ui, [0, %c16] : !xetile.tile<16x16xf32>
      scf.yield %tn, %un : !xetile.tile<16x16xf32>, !xetile.tile<16x16xf32>
    }
    gpu.return
  }
}
