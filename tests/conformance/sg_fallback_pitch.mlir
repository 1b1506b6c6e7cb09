// A pitch that no block load takes, bytes with odd widths, tiles at odd places.
// launch: k (3) (1)
// A: 33x50 f16 integers
// I: 9x13 i8 integers
// B: 33x50 f16 zeros
// J: 9x13 i8 zeros
// expect B = -A
// expect J = I
gpu.module @m {
  gpu.func @k(%A: memref<33x50xf16>, %I: memref<9x13xi8>, %B: memref<33x50xf16>, %J: memref<9x13xi8>) kernel {
    %x = gpu.block_id x
    %c11 = arith.constant 11 : index
    %c3 = arith.constant 3 : index
    %row = arith.muli %x, %c11 : index
    %t = xetile.init_tile %A[%row, 0] : memref<33x50xf16> -> !xetile.tile<11x64xf16>
    %v = xetile.load_tile %t : !xetile.tile<11x64xf16> -> vector<11x64xf16>
    %n = arith.negf %v : vector<11x64xf16>
    %u = xetile.init_tile %B[%row, 0] : memref<33x50xf16> -> !xetile.tile<11x64xf16>
    xetile.store_tile %n, %u : vector<11x64xf16>, !xetile.tile<11x64xf16>
    %r = arith.muli %x, %c3 : index
    %ti = xetile.init_tile %I[%r, 0] : memref<9x13xi8> -> !xetile.tile<3x13xi8>
    %i = xetile.load_tile %ti : !xetile.tile<3x13xi8> -> vector<3x13xi8>
    %tj = xetile.init_tile %J[%r, 0] : memref<9x13xi8> -> !xetile.tile<3x13xi8>
    xetile.store_tile %i, %tj : vector<3x13xi8>, !xetile.tile<3x13xi8>
    gpu.return
  }
}
