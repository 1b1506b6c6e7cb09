// Ids of a team of three dimensions: thread_id, block_dim, subgroup_id, num_subgroups, global_id.
// launch: k (2) (2, 3, 2)
// O: 24x8 i32 zeros
// expect O = np.array([[i % 2, i // 2 % 3, i % 12 // 6, 2, 3, i % 12, 12, i // 12 * 2 + i % 2] for i in range(24)])
gpu.module @m {
  gpu.func @k(%O: memref<24x8xi32>) kernel attributes {known_block_size = array<i32: 2, 3, 2>} {
    %x = gpu.thread_id x
    %y = gpu.thread_id y
    %z = gpu.thread_id z
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %sg = gpu.subgroup_id : index
    %n = gpu.num_subgroups : index
    %g = gpu.global_id x
    %b = gpu.block_id x
    %0 = arith.index_cast %x : index to i32
    %1 = arith.index_cast %y : index to i32
    %2 = arith.index_cast %z : index to i32
    %3 = arith.index_cast %dx : index to i32
    %4 = arith.index_cast %dy : index to i32
    %5 = arith.index_cast %sg : index to i32
    %6 = arith.index_cast %n : index to i32
    %7 = arith.index_cast %g : index to i32
    %v = vector.from_elements %0, %1, %2, %3, %4, %5, %6, %7 : vector<1x8xi32>
    %r = arith.muli %b, %n : index
    %row = arith.addi %r, %sg : index
    %t = xetile.init_tile %O[%row, 0] : memref<24x8xi32> -> !xetile.tile<1x8xi32>
    xetile.store_tile %v, %t : vector<1x8xi32>, !xetile.tile<1x8xi32>
    gpu.return
  }
}
