// Scalars of every width as arguments; booleans; arithmetic on them without sign.
// launch: k (1) (1)
// a: 200
// b: 65535
// c: -7
// d: 1
// e: 0.5
// f: 1.5
// g: -3
// O: 8 f64 zeros
// expect O = np.array([200, 65535, -7, 1, 0.5, 1.5, -3, 249])
gpu.module @m {
  gpu.func @k(%a: i8, %b: i16, %c: i64, %d: i1, %e: f16, %f: bf16, %g: index, %O: memref<8xf64>) kernel {
    %c0 = arith.constant 0 : index
    %0 = arith.uitofp %a : i8 to f64
    %1 = arith.uitofp %b : i16 to f64
    %2 = arith.sitofp %c : i64 to f64
    %3 = arith.uitofp %d : i1 to f64
    %4 = arith.extf %e : f16 to f64
    %5 = arith.extf %f : bf16 to f64
    %gi = arith.index_cast %g : index to i32
    %6 = arith.sitofp %gi : i32 to f64
    %ci = arith.trunci %c : i64 to i8
    %7 = arith.uitofp %ci : i8 to f64
    %v = vector.from_elements %0, %1, %2, %3, %4, %5, %6, %7 : vector<8xf64>
    vector.store %v, %O[%c0] : memref<8xf64>, vector<8xf64>
    gpu.return
  }
}
