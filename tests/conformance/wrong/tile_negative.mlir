// error: X0701 2:31 a shape and a type of elements expected, such as 8x16xf32
func.func @f(%t: !xetile.tile<-8x16xf32>) {
  return
}
