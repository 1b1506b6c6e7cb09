// error: X0702 4:3 two functions called `k`
gpu.module @m {
  gpu.func @k() kernel { gpu.return }
  gpu.func @k() kernel { gpu.return }
}
