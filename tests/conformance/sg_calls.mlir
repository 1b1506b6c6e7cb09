// Functions of the device that a kernel calls, one calling the other.
// launch: k (2) (1)
// A: 32x16 f32 integers
// expect A = (A + 1) * 3
module attributes {gpu.container_module} {
  gpu.module @m {
    func.func private @add_one(%v: vector<16x16xf32>) -> vector<16x16xf32> {
      %one = arith.constant dense<1.0> : vector<16x16xf32>
      %r = arith.addf %v, %one : vector<16x16xf32>
      return %r : vector<16x16xf32>
    }
    func.func @twice(%v: vector<16x16xf32>) -> (vector<16x16xf32>, vector<16x16xf32>) {
      %a = call @add_one(%v) : (vector<16x16xf32>) -> vector<16x16xf32>
      %b = arith.addf %a, %a : vector<16x16xf32>
      return %a, %b : vector<16x16xf32>, vector<16x16xf32>
    }
    gpu.func @k(%A: memref<32x16xf32>) kernel {
      %c16 = arith.constant 16 : index
      %x = gpu.block_id x
      %m = arith.muli %x, %c16 : index
      %t = xetile.init_tile %A[%m, 0] : memref<32x16xf32> -> !xetile.tile<16x16xf32>
      %v = xetile.load_tile %t : !xetile.tile<16x16xf32> -> vector<16x16xf32>
      %r:2 = func.call @twice(%v) : (vector<16x16xf32>) -> (vector<16x16xf32>, vector<16x16xf32>)
      %s = arith.addf %r#0, %r#1 : vector<16x16xf32>
      xetile.store_tile %s, %t : vector<16x16xf32>, !xetile.tile<16x16xf32>
      gpu.return
    }
  }
}
