// error: X0702 3:8 expected 2 indices, found 1
func.func @f(%a: memref<4x4xf32>, %i: index) {
  %0 = memref.load %a[%i] : memref<4x4xf32>
  return
}
