// Memory spaces by name, as `gpu` and `spirv` write them.
// launch: k (1) (2, 1, 1)
// A: 2x16 f32 integers
// B: 2x16 f32 zeros
// expect B = 2 * A[::-1]
gpu.module @m {
  gpu.func @k(%A: memref<2x16xf32, #gpu.address_space<global>>, %B: memref<2x16xf32>) kernel attributes {known_block_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %sg = gpu.subgroup_id : index
    %other = arith.subi %c1, %sg : index
    %s = memref.alloc() : memref<2x16xf32, #gpu.address_space<workgroup>>
    %w = memref.alloc() : memref<2x16xf32, #spirv.storage_class<Workgroup>>
    %ta = xetile.init_tile %A[%sg, 0] : memref<2x16xf32, #gpu.address_space<global>> -> !xetile.tile<1x16xf32>
    %a = xetile.load_tile %ta : !xetile.tile<1x16xf32> -> vector<1x16xf32>
    %ts = xetile.init_tile %s[%sg, 0] : memref<2x16xf32, #gpu.address_space<workgroup>> -> !xetile.tile<1x16xf32, #xetile.tile_attr<memory_space = 3>>
    xetile.store_tile %a, %ts : vector<1x16xf32>, !xetile.tile<1x16xf32, #xetile.tile_attr<memory_space = 3>>
    %v = vector.shape_cast %a : vector<1x16xf32> to vector<16xf32>
    vector.store %v, %w[%sg, %c0] : memref<2x16xf32, #spirv.storage_class<Workgroup>>, vector<16xf32>
    gpu.barrier
    %tr = xetile.init_tile %s[%other, 0] : memref<2x16xf32, #gpu.address_space<workgroup>> -> !xetile.tile<1x16xf32, #xetile.tile_attr<memory_space = 3>>
    %b = xetile.load_tile %tr : !xetile.tile<1x16xf32, #xetile.tile_attr<memory_space = 3>> -> vector<1x16xf32>
    %c = vector.load %w[%other, %c0] : memref<2x16xf32, #spirv.storage_class<Workgroup>>, vector<16xf32>
    %cc = vector.shape_cast %c : vector<16xf32> to vector<1x16xf32>
    %d = arith.addf %b, %cc : vector<1x16xf32>
    %tb = xetile.init_tile %B[%sg, 0] : memref<2x16xf32> -> !xetile.tile<1x16xf32>
    xetile.store_tile %d, %tb : vector<1x16xf32>, !xetile.tile<1x16xf32>
    gpu.return
  }
}
