// Every XeTile operation in MLIR's generic form, properties in either place.
// launch: k (1) (1)
// A: 16x32 f16 integers
// B: 32x16 f16 integers
// C: 16x16 f32 integers
// S: 16x1 f32 zeros
// expect C = A @ B + C
// expect S = (A @ B + C).sum(1, keepdims=True)
"builtin.module"() ({
  "gpu.module"() <{sym_name = "m"}> ({
    "gpu.func"() <{function_type = (memref<16x32xf16>, memref<32x16xf16>, memref<16x16xf32>, memref<16x1xf32>) -> (), workgroup_attributions = 0 : i64}> ({
    ^bb0(%A: memref<16x32xf16>, %B: memref<32x16xf16>, %C: memref<16x16xf32>, %S: memref<16x1xf32>):
      %c0 = "arith.constant"() <{value = 0 : index}> : () -> index
      %0 = "xetile.init_tile"(%A) <{operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>, static_offsets = array<i64: 0, 0>, static_sizes = array<i64>, static_strides = array<i64>}> : (memref<16x32xf16>) -> !xetile.tile<16x32xf16>
      %1 = "xetile.init_tile"(%B, %c0) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>, static_offsets = array<i64: -9223372036854775808, 0>, static_sizes = array<i64>, static_strides = array<i64>} : (memref<32x16xf16>, index) -> !xetile.tile<32x16xf16>
      %2 = "xetile.init_tile"(%C) <{operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>, static_offsets = array<i64: 0, 0>, static_sizes = array<i64>, static_strides = array<i64>}> : (memref<16x16xf32>) -> !xetile.tile<16x16xf32>
      %3 = "xetile.load_tile"(%0) <{padding = 0.0 : f32, l1_hint = #xetile.cache_hint<cached>}> : (!xetile.tile<16x32xf16>) -> vector<16x32xf16>
      %4 = "xetile.load_tile"(%1) {padding = 0.0 : f32} : (!xetile.tile<32x16xf16>) -> vector<32x16xf16>
      %5 = "xetile.load_tile"(%2) : (!xetile.tile<16x16xf32>) -> vector<16x16xf32>
      %6 = "xetile.tile_mma"(%3, %4, %5) {some.note = "kept"} : (vector<16x32xf16>, vector<32x16xf16>, vector<16x16xf32>) -> vector<16x16xf32>
      "xetile.prefetch_tile"(%2) : (!xetile.tile<16x16xf32>) -> ()
      "xetile.store_tile"(%6, %2) <{l1_hint = #xetile.cache_hint<write_back>}> : (vector<16x16xf32>, !xetile.tile<16x16xf32>) -> ()
      %t = "xetile.tile_transpose"(%6) <{permutation = array<i64: 1, 0>}> : (vector<16x16xf32>) -> vector<16x16xf32>
      %7 = "xetile.reduction"(%t) <{kind = #vector.kind<add>, reduction_dims = array<i64: 0>}> : (vector<16x16xf32>) -> vector<1x16xf32>
      %8 = "xetile.transpose"(%7) <{permutation = array<i64: 1, 0>}> : (vector<1x16xf32>) -> vector<16x1xf32>
      %9 = "xetile.init_tile"(%S) <{operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>, static_offsets = array<i64: 0, 0>, static_sizes = array<i64>, static_strides = array<i64>}> : (memref<16x1xf32>) -> !xetile.tile<16x1xf32>
      "xetile.store_tile"(%8, %9) : (vector<16x1xf32>, !xetile.tile<16x1xf32>) -> ()
      "gpu.return"() : () -> ()
    }) {gpu.kernel, sym_name = "k"} : () -> ()
  }) : () -> ()
}) : () -> ()
