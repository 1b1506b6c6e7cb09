// Scatter tiles on shared memory: elements turned round.
// launch: k (1) (1)
// A: 64 f32 integers
// B: 64 f32 zeros
// expect B = A[::-1]
gpu.module @m {
  gpu.func @k(%A: memref<64xf32>, %B: memref<64xf32>) kernel {
    %n = vector.step : vector<64xindex>
    %c63 = arith.constant dense<63> : vector<64xindex>
    %r = arith.subi %c63, %n : vector<64xindex>
    %m = arith.constant dense<true> : vector<64xi1>
    %slm = memref.alloc() : memref<64xf32, 3>
    %ta = xetile.init_tile %A, %n : memref<64xf32>, vector<64xindex> -> !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>
    %ts = xetile.init_tile %slm, %r : memref<64xf32, 3>, vector<64xindex> -> !xetile.tile<64xf32, #xetile.tile_attr<scattered = true, memory_space = 3>>
    %tl = xetile.init_tile %slm, %n : memref<64xf32, 3>, vector<64xindex> -> !xetile.tile<64xf32, #xetile.tile_attr<memory_space = 3 : i64, scattered = true>>
    %tb = xetile.init_tile %B, %n : memref<64xf32>, vector<64xindex> -> !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>
    %a = xetile.load %ta, %m : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1> -> vector<64xf32>
    xetile.store %a, %ts, %m : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true, memory_space = 3>>, vector<64xi1>
    gpu.barrier
    %b = xetile.load %tl, %m : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true, memory_space = 3>>, vector<64xi1> -> vector<64xf32>
    xetile.store %b, %tb, %m : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1>
    gpu.return
  }
}
