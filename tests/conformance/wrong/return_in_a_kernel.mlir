// error: X0702 3:5
gpu.module @m {
    gpu.func @k(%a: f32) -> f32 kernel {
    gpu.return %a : f32
  }
}
