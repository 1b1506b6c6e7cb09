// Softmax of long rows, three times over tiles of 32 columns; f16 out.
// launch: k (2) (1)
// A: 16x128 f16 integers
// B: 16x128 f16 zeros
// tolerance: 1e-3
// expect B = softmax(A)
gpu.module @m {
  gpu.func @k(%A: memref<16x128xf16>, %B: memref<16x128xf16>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %bx = gpu.block_id x
    %m = index.mul %bx, %c8
    %low = arith.constant dense<-3.40282347E+38> : vector<8x1xf32>
    %none = arith.constant dense<0.0> : vector<8x1xf32>
    %first = xetile.init_tile %A[%m, 0] : memref<16x128xf16> -> !xetile.tile<8x32xf16>
    %max:2 = scf.for %j = %c0 to %c128 step %c32 iter_args(%t = %first, %best = %low) -> (!xetile.tile<8x32xf16>, vector<8x1xf32>) {
      %v = xetile.load_tile %t : !xetile.tile<8x32xf16> -> vector<8x32xf16>
      %f = arith.extf %v : vector<8x32xf16> to vector<8x32xf32>
      %r = xetile.reduction <maxnumf>, %f [1] : vector<8x32xf32> -> vector<8x1xf32>
      %b = arith.maxnumf %best, %r : vector<8x1xf32>
      %n = xetile.update_tile_offset %t, [0, 32] : !xetile.tile<8x32xf16>
      scf.yield %n, %b : !xetile.tile<8x32xf16>, vector<8x1xf32>
    }
    %maxb = xetile.broadcast %max#1 [1] : vector<8x1xf32> -> vector<8x32xf32>
    %sum = scf.for %j = %c0 to %c128 step %c32 iter_args(%s = %none) -> (vector<8x1xf32>) {
      %t = xetile.init_tile %A[%m, %j] : memref<16x128xf16> -> !xetile.tile<8x32xf16>
      %v = xetile.load_tile %t : !xetile.tile<8x32xf16> -> vector<8x32xf16>
      %f = arith.extf %v : vector<8x32xf16> to vector<8x32xf32>
      %d = arith.subf %f, %maxb : vector<8x32xf32>
      %e = math.exp %d fastmath<fast> : vector<8x32xf32>
      %r = xetile.reduction <add>, %e [1] : vector<8x32xf32> -> vector<8x1xf32>
      %n = arith.addf %s, %r : vector<8x1xf32>
      scf.yield %n : vector<8x1xf32>
    }
    %sumb = xetile.broadcast %sum [1] : vector<8x1xf32> -> vector<8x32xf32>
    scf.for %j = %c0 to %c128 step %c32 {
      %t = xetile.init_tile %A[%m, %j] : memref<16x128xf16> -> !xetile.tile<8x32xf16>
      %v = xetile.load_tile %t : !xetile.tile<8x32xf16> -> vector<8x32xf16>
      %f = arith.extf %v : vector<8x32xf16> to vector<8x32xf32>
      %d = arith.subf %f, %maxb : vector<8x32xf32>
      %e = math.exp %d : vector<8x32xf32>
      %q = arith.divf %e, %sumb : vector<8x32xf32>
      %h = arith.truncf %q : vector<8x32xf32> to vector<8x32xf16>
      %o = xetile.init_tile %B[%m, %j] : memref<16x128xf16> -> !xetile.tile<8x32xf16>
      xetile.store_tile %h, %o : vector<8x32xf16>, !xetile.tile<8x32xf16>
    }
    gpu.return
  }
}
