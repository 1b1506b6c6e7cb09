// error: X0702 3:8 extents [4, 8] do not make 31
func.func @f(%a: memref<4x8xf32>) {
  %0 = memref.collapse_shape %a [[0, 1]] : memref<4x8xf32> into memref<31xf32>
  return
}
