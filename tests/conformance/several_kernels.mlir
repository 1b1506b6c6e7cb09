// Kernels of one name in two modules, a host function of that name too, functions between.
// launch: first::k (1) (1)
// A: 8x16 f32 integers
// expect A = A + 1
// launch: second::k (1) (1)
// A: 8x16 f32 integers
// expect A = A * 2
// launch: only (1) (1)
// A: 8x16 f32 integers
// expect A = -A
module attributes {gpu.container_module} {
  func.func @only(%A: memref<8x16xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @first::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%A : memref<8x16xf32>)
    return
  }
  gpu.module @first {
    gpu.func @k(%A: memref<8x16xf32>) kernel {
      %one = arith.constant dense<1.0> : vector<8x16xf32>
      %t = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      %w = arith.addf %v, %one : vector<8x16xf32>
      xetile.store_tile %w, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
      gpu.return
    }
  }
  gpu.module @second {
    gpu.func @k(%A: memref<8x16xf32>) kernel {
      %t = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      %w = arith.addf %v, %v : vector<8x16xf32>
      xetile.store_tile %w, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
      gpu.return
    }
    gpu.func @only(%A: memref<8x16xf32>) kernel {
      %t = xetile.init_tile %A[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      %w = arith.negf %v : vector<8x16xf32>
      xetile.store_tile %w, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>
      gpu.return
    }
  }
}
