// An atomic on a scattered tile: a histogram by index.
// launch: k (2) (1)
// I: 64 i32 bits
// H: 64 i32 zeros
// expect H = np.concatenate([2 * np.bincount(I, minlength=2), np.zeros(62, int)])
gpu.module @m {
  gpu.func @k(%I: memref<64xi32>, %H: memref<64xi32>) kernel {
    %c0 = arith.constant 0 : index
    %i = vector.load %I[%c0] : memref<64xi32>, vector<64xi32>
    %x = arith.index_castui %i : vector<64xi32> to vector<64xindex>
    %r = vector.shape_cast %x : vector<64xindex> to vector<4x16xindex>
    %one = arith.constant dense<1> : vector<4x16xi32>
    %t = xetile.init_tile %H, %r : memref<64xi32>, vector<4x16xindex> -> !xetile.tile<4x16xi32, #xetile.tile_attr<scattered = true>>
    %old = xetile.atomic_rmw addi %one, %t : vector<4x16xi32>, !xetile.tile<4x16xi32, #xetile.tile_attr<scattered = true>> -> vector<4x16xi32>
    gpu.return
  }
}
