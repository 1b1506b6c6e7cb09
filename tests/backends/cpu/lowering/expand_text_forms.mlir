// RUN: xetl-opt %s -p expand-text-forms | filecheck %s

gpu.module @m {
  // CHECK-LABEL: @forms
  // CHECK:       arith.constant 4 : index
  // CHECK:       xetile.tile_reduce <add>, {{.*}} [1]
  // CHECK:       vector.shape_cast
  // CHECK:       arith.addf
  // CHECK:       xetile.tile_transpose
  gpu.func @forms(%a: memref<8x16xf32>, %b: memref<8x1xf32>, %c: memref<16x8xf32>) kernel attributes {xetile.text, xetile.subgroups = array<i64: 1, 1, 1>} {
    %i = index.constant 4
    %t = xetile.init_tile %a[%i, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
    %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    %acc = arith.constant dense<1.0> : vector<8xf32>
    %r = vector.multi_reduction <add>, %v, %acc [1] : vector<8x16xf32> to vector<8xf32>
    %s = vector.shape_cast %r : vector<8xf32> to vector<8x1xf32>
    %u = xetile.init_tile %b[0, 0] : memref<8x1xf32> -> !xetile.tile<8x1xf32>
    xetile.store_tile %s, %u : vector<8x1xf32>, !xetile.tile<8x1xf32>
    %w = vector.transpose %v, [1, 0] : vector<8x16xf32> to vector<16x8xf32>
    %x = xetile.init_tile %c[0, 0] : memref<16x8xf32> -> !xetile.tile<16x8xf32>
    xetile.store_tile %w, %x : vector<16x8xf32>, !xetile.tile<16x8xf32>
    gpu.return
  }

  // Left alone: what is no text.
  // CHECK-LABEL: @front_end
  // CHECK:       index.constant
  gpu.func @front_end() kernel {
    %i = index.constant 4
    gpu.return
  }
}
