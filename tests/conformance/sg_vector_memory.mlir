// vector.load, store, maskedload, maskedstore, gather, scatter, transfer_read, transfer_write.
// launch: k (1) (1)
// A: 8x32 f32 integers
// B: 8x32 f32 zeros
// expect B = np.stack([A[0], np.where(np.arange(32) < 20, A[1], -1), np.where(np.arange(32) < 7, A[2], 0), A[3][::-1], np.where(np.arange(32) % 2 == 0, A[4], 0), np.concatenate([A[5, 4:], [9] * 4]), A[6] + 1, A[7] + 1])
gpu.module @m {
  gpu.func @k(%A: memref<8x32xf32>, %B: memref<8x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %c7 = arith.constant 7 : index
    %c20 = arith.constant 20 : index
    %n = vector.step : vector<32xindex>
    %0 = vector.load %A[%c0, %c0] : memref<8x32xf32>, vector<32xf32>
    vector.store %0, %B[%c0, %c0] : memref<8x32xf32>, vector<32xf32>
    %m20 = vector.create_mask %c20 : vector<32xi1>
    %minus = arith.constant dense<-1.0> : vector<32xf32>
    %1 = vector.maskedload %A[%c1, %c0], %m20, %minus : memref<8x32xf32>, vector<32xi1>, vector<32xf32> into vector<32xf32>
    vector.store %1, %B[%c1, %c0] : memref<8x32xf32>, vector<32xf32>
    %m7 = vector.constant_mask [7] : vector<32xi1>
    %2 = vector.load %A[%c2, %c0] : memref<8x32xf32>, vector<32xf32>
    vector.maskedstore %B[%c2, %c0], %m7, %2 : memref<8x32xf32>, vector<32xi1>, vector<32xf32>
    %c31 = arith.constant dense<31> : vector<32xindex>
    %rev = arith.subi %c31, %n : vector<32xindex>
    %all = arith.constant dense<true> : vector<32xi1>
    %3 = vector.gather %A[%c3, %c0] [%rev], %all, %minus : memref<8x32xf32>, vector<32xindex>, vector<32xi1>, vector<32xf32> into vector<32xf32>
    vector.store %3, %B[%c3, %c0] : memref<8x32xf32>, vector<32xf32>
    %two = arith.constant dense<2> : vector<32xindex>
    %zero = arith.constant dense<0> : vector<32xindex>
    %rem = arith.remui %n, %two : vector<32xindex>
    %even = arith.cmpi eq, %rem, %zero : vector<32xindex>
    %4 = vector.load %A[%c4, %c0] : memref<8x32xf32>, vector<32xf32>
    vector.scatter %B[%c4, %c0] [%n], %even, %4 : memref<8x32xf32>, vector<32xindex>, vector<32xi1>, vector<32xf32>
    %nine = arith.constant 9.0 : f32
    %5 = vector.transfer_read %A[%c5, %c4], %nine : memref<8x32xf32>, vector<32xf32>
    vector.transfer_write %5, %B[%c5, %c0] {in_bounds = [true]} : vector<32xf32>, memref<8x32xf32>
    %6 = vector.transfer_read %A[%c6, %c0], %nine {in_bounds = [true, true]} : memref<8x32xf32>, vector<2x32xf32>
    %one = arith.constant dense<1.0> : vector<2x32xf32>
    %7 = arith.addf %6, %one : vector<2x32xf32>
    vector.transfer_write %7, %B[%c6, %c0] : vector<2x32xf32>, memref<8x32xf32>
    gpu.return
  }
}
