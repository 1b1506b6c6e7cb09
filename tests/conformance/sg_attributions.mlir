// Memory that the head of a kernel asks for, in the address spaces of `gpu`.
// launch: k (1) (2, 1, 1)
// A: 2x16 f32 integers
// B: 2x16 f32 zeros
// expect B = A[::-1] + A
gpu.module @m {
  gpu.func @k(%A: memref<2x16xf32>, %B: memref<2x16xf32>) workgroup(%slm : memref<2x16xf32, 3>) private(%mine : memref<1x16xf32, 5>) kernel attributes {known_block_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %sg = gpu.subgroup_id : index
    %other = arith.subi %c1, %sg : index
    %v = vector.load %A[%sg, %c0] : memref<2x16xf32>, vector<16xf32>
    vector.store %v, %slm[%sg, %c0] : memref<2x16xf32, 3>, vector<16xf32>
    vector.store %v, %mine[%c0, %c0] : memref<1x16xf32, 5>, vector<16xf32>
    gpu.barrier
    %w = vector.load %slm[%other, %c0] : memref<2x16xf32, 3>, vector<16xf32>
    %m = vector.load %mine[%c0, %c0] : memref<1x16xf32, 5>, vector<16xf32>
    %s = arith.addf %w, %m : vector<16xf32>
    vector.store %s, %B[%sg, %c0] : memref<2x16xf32>, vector<16xf32>
    gpu.return
  }
}
