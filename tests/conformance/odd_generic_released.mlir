// The generic form as the released dialect prints it: kinds as enumerations, other names, masks last.
// launch: k (1) (1)
// A: 8x16 f32 integers
// O: 8x16 f32 ones
// P: 64 f32 zeros
// R: 1x16 f32 zeros
// expect O = A + A.sum(0) + 1
// expect P = np.where(np.arange(64) < 32, 3, 0)
// expect R = A.max(0, keepdims=True)
gpu.module @m {
  gpu.func @k(%A: memref<8x16xf32>, %O: memref<8x16xf32>, %P: memref<64xf32>, %R: memref<1x16xf32>) kernel {
    %ta = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %to = xetile.init_tile %O[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %tr = xetile.init_tile %R[0, 0] : memref<1x16xf32> -> !xetile.tile<1x16xf32>
    %a = "xetile.load_tile"(%ta) <{padding = 0.000000e+00 : f32}> : (!xetile.tile<8x16xf32>) -> vector<8x16xf32>
    %r = "xetile.reduction"(%a) <{kind = #vector.kind<add>, reduction_dims = array<i64: 0>}> : (vector<8x16xf32>) -> vector<1x16xf32>
    %m = "xetile.reduction"(%a) {kind = #vector.kind<maximumf>, reduction_dims = array<i64: 0>} : (vector<8x16xf32>) -> vector<1x16xf32>
    %b = "xetile.broadcast"(%r) <{broadcast_dim = array<i64: 0>}> : (vector<1x16xf32>) -> vector<8x16xf32>
    %s = "arith.addf"(%a, %b) <{fastmath = #arith.fastmath<none>}> : (vector<8x16xf32>, vector<8x16xf32>) -> vector<8x16xf32>
    %old = "xetile.atomic_rmw"(%s, %to) <{kind = 0 : i64}> : (vector<8x16xf32>, !xetile.tile<8x16xf32>) -> vector<8x16xf32>
    "xetile.store_tile"(%m, %tr) : (vector<1x16xf32>, !xetile.tile<1x16xf32>) -> ()
    %n = "vector.step"() : () -> vector<32xindex>
    %mask = "arith.constant"() <{value = dense<true> : vector<32xi1>}> : () -> vector<32xi1>
    %three = "arith.constant"() <{value = dense<3.0> : vector<32xf32>}> : () -> vector<32xf32>
    %tp = "xetile.init_tile"(%P, %n) <{operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>, static_offsets = array<i64>, static_sizes = array<i64>, static_strides = array<i64>}> : (memref<64xf32>, vector<32xindex>) -> !xetile.tile<32xf32, #xetile.tile_attr<scattered = true>>
    "xetile.store"(%three, %tp, %mask) : (vector<32xf32>, !xetile.tile<32xf32, #xetile.tile_attr<scattered = true>>, vector<32xi1>) -> ()
    gpu.return
  }
}
