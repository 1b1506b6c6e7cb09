// interleave, deinterleave, to_elements, constants of the module.
// launch: k (1) (1)
// A: 2x16 f32 integers
// B: 4x16 f32 zeros
// expect B = np.stack([A[0], A[1] * 2, np.repeat(A[0, :8], 2) * np.tile([1, 0], 8) + np.repeat(A[1, :8], 2) * np.tile([0, 1], 8), A[0] * 0 + A[0, :4].sum()])
gpu.module @m {
  memref.global "private" constant @factors : memref<2x16xf32> = dense<2.0>
  gpu.func @k(%A: memref<2x16xf32>, %B: memref<4x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %g = memref.get_global @factors : memref<2x16xf32>
    %f = vector.load %g[%c1, %c0] : memref<2x16xf32>, vector<16xf32>
    %a = vector.load %A[%c0, %c0] : memref<2x16xf32>, vector<16xf32>
    %b = vector.load %A[%c1, %c0] : memref<2x16xf32>, vector<16xf32>
    %i = vector.interleave %a, %b : vector<16xf32> -> vector<32xf32>
    %e, %o = vector.deinterleave %i : vector<32xf32> -> vector<16xf32>
    vector.store %e, %B[%c0, %c0] : memref<4x16xf32>, vector<16xf32>
    %of = arith.mulf %o, %f : vector<16xf32>
    vector.store %of, %B[%c1, %c0] : memref<4x16xf32>, vector<16xf32>
    %h = vector.extract_strided_slice %i {offsets = [0], sizes = [16], strides = [1]} : vector<32xf32> to vector<16xf32>
    vector.store %h, %B[%c2, %c0] : memref<4x16xf32>, vector<16xf32>
    %four = vector.extract_strided_slice %a {offsets = [0], sizes = [4], strides = [1]} : vector<16xf32> to vector<4xf32>
    %0:4 = vector.to_elements %four : vector<4xf32>
    %s0 = arith.addf %0#0, %0#1 : f32
    %s1 = arith.addf %0#2, %0#3 : f32
    %s = arith.addf %s0, %s1 : f32
    %sv = vector.splat %s : vector<16xf32>
    vector.store %sv, %B[%c3, %c0] : memref<4x16xf32>, vector<16xf32>
    gpu.return
  }
}
