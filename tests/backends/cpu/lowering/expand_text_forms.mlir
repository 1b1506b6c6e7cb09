// RUN: xetl-opt %s -p legalize-vectors,expand-text-forms | filecheck %s

gpu.module @m {
  // CHECK-LABEL: @forms
  // CHECK:       xetile.tile_reduce <add>, {{.*}} [1]
  // CHECK:       vector.shape_cast
  // CHECK:       arith.addf
  // CHECK:       xetile.tile_transpose
  gpu.func @forms(%a: memref<8x16xf32>, %b: memref<8x1xf32>, %c: memref<16x8xf32>) kernel attributes {xetile.text, xetile.subgroups = array<i64: 1, 1, 1>} {
    %i = arith.constant 4 : index
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

  // What moves elements goes through memory: a transpose of three dimensions is a copy
  // of strided views, a plane at a time.
  // CHECK-LABEL: @moves
  // CHECK:       memref.alloca() : memref<24xf32>
  // CHECK:       xetile.store_tile
  // CHECK:       scf.for
  // CHECK:         memref.reinterpret_cast
  // CHECK:         xetile.load_tile
  // CHECK:         xetile.store_tile
  // CHECK:       xetile.load_tile
  // CHECK-NOT:   vector.transpose
  gpu.func @moves(%v: vector<2x3x4xf32>) kernel attributes {xetile.text} {
    %w = vector.transpose %v, [2, 1, 0] : vector<2x3x4xf32> to vector<4x3x2xf32>
    gpu.return
  }

  // A sum over leading dimensions is one over rows; nothing moves.
  // CHECK-LABEL: @sums
  // CHECK:       vector.shape_cast {{.*}} to vector<8x4096xf32>
  // CHECK-NEXT:  xetile.tile_reduce <add>, {{.*}} [0]
  // CHECK-NOT:   memref.alloca
  // CHECK:       gpu.return
  gpu.func @sums(%v: vector<8x32x128xf32>, %a: vector<32x128xf32>) kernel attributes {xetile.text} {
    %w = vector.multi_reduction <add>, %v, %a [0] : vector<8x32x128xf32> to vector<32x128xf32>
    gpu.return
  }

  // Code generation guards divisions (xetl/codegen/division.py): here they stay.
  // CHECK-LABEL: @divides
  // CHECK-NEXT:  arith.divui %a, %b : i32
  // CHECK-NEXT:  arith.constant 5 : i32
  // CHECK-NEXT:  arith.divui %a, %c5 : i32
  // CHECK-NEXT:  gpu.return
  gpu.func @divides(%a: i32, %b: i32) kernel attributes {xetile.text} {
    %x = arith.divui %a, %b : i32
    %c5 = arith.constant 5 : i32
    %y = arith.divui %a, %c5 : i32
    gpu.return
  }

  // 16 bits of a product are those of an f32, rounded once.
  // CHECK-LABEL: @narrow
  // CHECK:       arith.extf %c : vector<8x8xf16> to vector<8x8xf32>
  // CHECK:       xetile.tile_mma {{.*}} -> vector<8x8xf32>
  // CHECK:       arith.truncf
  gpu.func @narrow(%a: vector<8x8xf16>, %c: vector<8x8xf16>) kernel attributes {xetile.text} {
    %d = xetile.tile_mma %a, %a, %c : vector<8x8xf16>, vector<8x8xf16>, vector<8x8xf16> -> vector<8x8xf16>
    gpu.return
  }

  // A view of a view counts from the origin of its memory.
  // CHECK-LABEL: @origin
  // CHECK:       memref.reinterpret_cast %m to offset: [4]
  gpu.func @origin(%m: memref<64xf32>) kernel attributes {xetile.text} {
    %s = memref.subview %m[8] [8] [1] : memref<64xf32> to memref<8xf32, strided<[1], offset: 8>>
    %r = memref.reinterpret_cast %s to offset: [4], sizes: [2], strides: [1] : memref<8xf32, strided<[1], offset: 8>> to memref<2xf32, strided<[1], offset: 4>>
    gpu.return
  }

  // Left alone: what is no text.
  // CHECK-LABEL: @front_end
  // CHECK:       gpu.lane_id
  gpu.func @front_end() kernel {
    %i = gpu.lane_id
    gpu.return
  }
}
