// error: X0702 2:1
func.func @f(%a: memref<4xf32>) {
}
