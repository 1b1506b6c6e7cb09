// error: X0701 3:12 works on lanes
func.func @f(%a: f32, %i: i32) {
  %0, %1 = gpu.shuffle xor %a, %i, %i : f32
  return
}
