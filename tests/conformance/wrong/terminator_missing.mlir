// error: X0702 4:10 is not a terminator
gpu.module @m {
  gpu.func @k(%a: memref<4xf32>) kernel {
    %c = arith.constant 0 : index
  }
}
