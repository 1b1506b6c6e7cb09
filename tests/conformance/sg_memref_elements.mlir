// Elements one by one: load, store, atomic_rmw, private alloca, copy to and from shared memory.
// launch: k (2) (1)
// A: 32 i32 integers
// S: 1 i32 zeros
// B: 32 i32 zeros
// expect S = 2 * A.sum(keepdims=True)
// expect B = A * A
gpu.module @m {
  gpu.func @k(%A: memref<32xi32>, %S: memref<1xi32>, %B: memref<32xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %mine = memref.alloca() : memref<32xi32>
    %slm = memref.alloc() : memref<32xi32, 3>
    memref.copy %A, %slm : memref<32xi32> to memref<32xi32, 3>
    gpu.barrier
    scf.for %i = %c0 to %c32 step %c1 {
      %v = memref.load %slm[%i] : memref<32xi32, 3>
      %old = memref.atomic_rmw addi %v, %S[%c0] : (i32, memref<1xi32>) -> i32
      %q = arith.muli %v, %v : i32
      memref.store %q, %mine[%i] : memref<32xi32>
    }
    memref.copy %mine, %B : memref<32xi32> to memref<32xi32>
    memref.dealloc %slm : memref<32xi32, 3>
    gpu.return
  }
}
