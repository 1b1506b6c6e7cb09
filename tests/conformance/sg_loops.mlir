// scf.while, nested scf.for, i32 bounds, index_switch, execute_region, scf.parallel.
// launch: k (3) (1)
// O: 3x16 f32 zeros
// expect O = np.array([[1] * 16, [22] * 16, [333] * 16]) + np.arange(16) % 4 + 6
gpu.module @m {
  gpu.func @k(%O: memref<3x16xf32>) kernel {
    %x = gpu.block_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1.0 : f32
    %ten = arith.constant 1.0e+01 : f32
    %digit = scf.index_switch %x -> f32
    case 0 {
      scf.yield %one : f32
    }
    case 1 {
      %two = arith.constant 2.0 : f32
      scf.yield %two : f32
    }
    default {
      %three = arith.constant 3.0 : f32
      scf.yield %three : f32
    }
    %w:2 = scf.while (%i = %c0, %v = %digit) : (index, f32) -> (index, f32) {
      %go = arith.cmpi ult, %i, %x : index
      scf.condition(%go) %i, %v : index, f32
    } do {
    ^bb0(%i: index, %v: f32):
      %n = arith.addi %i, %c1 : index
      %s = arith.mulf %v, %ten : f32
      %u = arith.addf %s, %digit : f32
      scf.yield %n, %u : index, f32
    }
    %lo = arith.constant 0 : i32
    %hi = arith.constant 3 : i32
    %st = arith.constant 1 : i32
    %six = scf.for %i = %lo to %hi step %st iter_args(%acc = %w#1) -> (f32) : i32 {
      %r = scf.for %j = %c0 to %c4 step %c1 iter_args(%b = %acc) -> (f32) {
        %h = arith.constant 5.0e-01 : f32
        %n = arith.addf %b, %h : f32
        scf.yield %n : f32
      }
      scf.yield %r : f32
    }
    %e = scf.execute_region -> f32 {
      %z = arith.addf %six, %one : f32
      %y = arith.subf %z, %one : f32
      scf.yield %y : f32
    }
    %mine = memref.alloca() : memref<4x4xf32>
    scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c4) step (%c1, %c1) {
      %ji = arith.index_cast %j : index to i32
      %jf = arith.sitofp %ji : i32 to f32
      %t = arith.addf %jf, %e : f32
      memref.store %t, %mine[%i, %j] : memref<4x4xf32>
      scf.reduce
    }
    %v4 = vector.transfer_read %mine[%c0, %c0], %one : memref<4x4xf32>, vector<4x4xf32>
    %v16 = vector.shape_cast %v4 : vector<4x4xf32> to vector<1x16xf32>
    %t = xetile.init_tile %O[%x, 0] : memref<3x16xf32> -> !xetile.tile<1x16xf32>
    xetile.store_tile %v16, %t : vector<1x16xf32>, !xetile.tile<1x16xf32>
    gpu.return
  }
}
