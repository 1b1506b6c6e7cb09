// RUN: xetl-opt %s -p collapse-vectors | filecheck %s

gpu.module @m {
  // The last dimension is a row, all others count rows; a reshape to the same matrix
  // disappears, one to another matrix stays.
  // CHECK-LABEL: @ranks
  // CHECK:         %c = arith.constant dense<1.000000e+00> : vector<8x4xf32>
  // CHECK-NEXT:    %d = arith.addf %v, %c : vector<8x4xf32>
  // CHECK-NEXT:    %e = vector.shape_cast %d : vector<8x4xf32> to vector<4x8xf32>
  gpu.func @ranks(%v: vector<8x4xf32>) kernel {
    %a = vector.shape_cast %v : vector<8x4xf32> to vector<2x4x4xf32>
    %c = arith.constant dense<1.0> : vector<2x4x4xf32>
    %d = arith.addf %a, %c : vector<2x4x4xf32>
    %e = vector.shape_cast %d : vector<2x4x4xf32> to vector<2x2x8xf32>
    gpu.return
  }

  // A vector of rank 0 is one element, one of rank 1 stays.
  // CHECK-LABEL: @few
  // CHECK:         arith.constant dense<2> : vector<1x1xi32>
  // CHECK-NEXT:    arith.constant dense<3> : vector<5xi32>
  gpu.func @few() kernel {
    %a = arith.constant dense<2> : vector<i32>
    %b = arith.constant dense<3> : vector<5xi32>
    gpu.return
  }

  // Left alone: blocks of tiles.
  // CHECK-LABEL: @blocks
  // CHECK:         vector<2x2x4x4xf32>
  gpu.func @blocks(%v: vector<8x8xf32>) kernel {
    %p = xetile.tile_pack %v {inner_blocks = array<i64: 4, 4>} : vector<8x8xf32> -> vector<2x2x4x4xf32>
    %s = math.exp %p : vector<2x2x4x4xf32>
    %u = xetile.tile_unpack %s {inner_blocks = array<i64: 4, 4>} : vector<2x2x4x4xf32> -> vector<8x8xf32>
    gpu.return
  }
}
