// RUN: xetl-opt %s -p 'convert-xetile-to-loops{target=amx}' --verify-stage=loops | filecheck %s --check-prefix=STREAMS
// RUN: xetl-opt %s -p 'convert-xetile-to-loops{target=avx512_bf16}' --verify-stage=loops | filecheck %s --check-prefix=ONE

// Sapphire Rapids sums four rows at once, for its prefetcher reads ahead in several
// pages; Zen 4 has four sums of one row.
// STREAMS-LABEL: @sums_of_long_rows
// STREAMS:       %[[FOUR:.*]] = arith.constant 4 : index
// STREAMS:       scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[FOUR]]
// STREAMS:       vector.store %{{.*}} vector<4xf32>
// ONE-LABEL:   @sums_of_long_rows
// ONE-NOT:     vector<4xf32>
// ONE:         vector.reduction <add>, %{{.*}} : vector<16xf32> into f32
func.func @sums_of_long_rows(%A: memref<?x?xf32, strided<[?, 1]>>, %B: memref<?x?xf32, strided<[?, 1]>>, %m: index, %n: index, %ld: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%x) = (%c0) to (%c1) step (%c1) {
    %a = xetile.init_tile %A[0, 0], [%m, %n], [%ld, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<16x1024xf32>
    %v = xetile.load_tile %a : !xetile.tile<16x1024xf32> -> vector<16x1024xf32>
    %s = xetile.tile_reduce <add>, %v [1] : vector<16x1024xf32> -> vector<16x1xf32>
    %c = xetile.init_tile %B[0, 0], [%m, %c1], [%c1, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<16x1xf32>
    xetile.store_tile %s, %c : vector<16x1xf32>, !xetile.tile<16x1xf32>
    scf.reduce
  }
  func.return
}
