// error: X0702 3:8 shapes do not agree
func.func @f(%a: memref<4x4xf32>) {
  %0 = memref.cast %a : memref<4x4xf32> to memref<4x5xf32>
  return
}
