// error: X0702 3:8
func.func @f(%t: memref<8x8xf32>) {
  %0 = "xetile.init_tile"(%t) <{operandSegmentSizes = array<i32: 1, 4, 0, 0, 0>, static_offsets = array<i64: 0, 0>, static_sizes = array<i64>, static_strides = array<i64>}> : (memref<8x8xf32>) -> !xetile.tile<8x8xf32>
  return
}
