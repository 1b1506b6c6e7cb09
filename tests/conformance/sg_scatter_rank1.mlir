// Scatter tiles of rank 1, the RFC's names and #scatter, memref<f16> as a base.
// launch: k (1) (1)
// A: 128 f16 integers
// B: 128 f16 zeros
// expect B = np.where(np.arange(128) % 2 == 0, A[::-1], 0)
gpu.module @m {
  gpu.func @k(%A: memref<f16>, %B: memref<128xf16>) kernel {
    %n = vector.step : vector<128xindex>
    %c127 = arith.constant dense<127> : vector<128xindex>
    %c2 = arith.constant dense<2> : vector<128xindex>
    %c0 = arith.constant dense<0> : vector<128xindex>
    %r = arith.subi %c127, %n : vector<128xindex>
    %rem = arith.remui %n, %c2 : vector<128xindex>
    %even = arith.cmpi eq, %rem, %c0 : vector<128xindex>
    %ta = xetile.init_tile %A, %r : memref<f16>, vector<128xindex> -> !xetile.tile<128xf16, #scatter>
    %tb = xetile.init_tile %B, %n : memref<128xf16>, vector<128xindex> -> !xetile.tile<128xf16, #xetile.tile_attr<scattered = true>>
    %a = xetile.load_gather %ta, %even : !xetile.tile<128xf16, #scatter>, vector<128xi1> -> vector<128xf16>
    xetile.store_scatter %a, %even, %tb : vector<128xf16>, vector<128xi1>, !xetile.tile<128xf16, #scatter>
    gpu.return
  }
}
