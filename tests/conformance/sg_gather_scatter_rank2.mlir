// Rows of indices moved by update_tile_offset; masks from create_mask; padding.
// launch: k (2) (1)
// A: 1024 f32 integers
// B: 1024 f32 zeros
// expect B = np.where(np.arange(1024) % 32 < 24, A, 9.5)
gpu.module @m {
  gpu.func @k(%A: memref<1024xf32>, %B: memref<1024xf32>) kernel attributes {VectorComputeFunctionINTEL} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c24 = arith.constant 24 : index
    %c512 = arith.constant 512 : index
    %bx = gpu.block_id x
    %start = arith.muli %bx, %c512 : index
    %step = vector.step : vector<128xindex>
    %base = vector.broadcast %start : index to vector<128xindex>
    %flat = arith.addi %step, %base : vector<128xindex>
    %idx = vector.shape_cast %flat : vector<128xindex> to vector<4x32xindex>
    %move = arith.constant dense<128> : vector<4x32xindex>
    %mask = vector.create_mask %c4, %c24 : vector<4x32xi1>
    %all = arith.constant dense<1> : vector<4x32xi1>
    %ta = xetile.init_tile %A, %idx : memref<1024xf32>, vector<4x32xindex> -> !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>
    %tb = xetile.init_tile %B, %idx : memref<1024xf32>, vector<4x32xindex> -> !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>
    %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %ta, %b = %tb) -> (!xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>, !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>) {
      xetile.prefetch_tile %a : !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>
      %v = xetile.load %a, %mask {padding = 9.5 : f32, l1_hint = #xetile.cache_hint<cached>} : !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>, vector<4x32xi1> -> vector<4x32xf32>
      xetile.store %v, %b, %all {l2_hint = #xetile.cache_hint<write_back>} : vector<4x32xf32>, !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>, vector<4x32xi1>
      %na = xetile.update_tile_offset %a, %move : !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>, vector<4x32xindex>
      %nb = xetile.update_tile_offset %b, %move : !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>, vector<4x32xindex>
      scf.yield %na, %nb : !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>, !xetile.tile<4x32xf32, #xetile.tile_attr<scattered = true>>
    }
    gpu.return
  }
}
