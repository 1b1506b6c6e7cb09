// scf.if with and without results, nested, arith.cmpi on i32 and index, chains of blocks.
// launch: k (4) (1)
// A: 64x16 f32 integers
// limit: 2
// x: 0.5
// expect A = np.concatenate([A[:16] + 0.5, A[16:32] - 0.5, A[32:48], A[48:] * 0])
gpu.module @m {
  gpu.func @k(%A: memref<64x16xf32>, %limit: i32, %x: f64) kernel attributes {VectorComputeFunctionINTEL} {
    %c16 = arith.constant 16 : index
    %c1 = arith.constant 1 : index
    %c3_i32 = arith.constant 3 : i32
    %id = gpu.block_id x
    cf.br ^bb1
  ^bb1:  // pred: ^bb0
    %i = arith.index_cast %id : index to i32
    %less = arith.cmpi slt, %i, %limit : i32
    %at = arith.muli %id, %c16 : index
    %f = arith.truncf %x : f64 to f32
    cf.br ^bb2(%f, %at : f32, index)
  ^bb2(%g: f32, %row: index):  // pred: ^bb1
    %t = xetile.init_tile %A[%row, 0] : memref<64x16xf32> -> !xetile.tile<16x16xf32>
    %v = xetile.load_tile %t : !xetile.tile<16x16xf32> -> vector<16x16xf32>
    %b = vector.broadcast %g : f32 to vector<16x16xf32>
    scf.if %less {
      %odd = arith.cmpi eq, %id, %c1 : index
      %r = scf.if %odd -> (vector<16x16xf32>) {
        %s = arith.subf %v, %b : vector<16x16xf32>
        scf.yield %s : vector<16x16xf32>
      } else {
        %s = arith.addf %v, %b : vector<16x16xf32>
        scf.yield %s : vector<16x16xf32>
      }
      xetile.store_tile %r, %t : vector<16x16xf32>, !xetile.tile<16x16xf32>
    } else {
      %last = arith.cmpi eq, %i, %c3_i32 : i32
      scf.if %last {
        %z = arith.constant dense<0.0> : vector<16x16xf32>
        xetile.store_tile %z, %t : vector<16x16xf32>, !xetile.tile<16x16xf32>
      }
    }
    gpu.return
  }
}
