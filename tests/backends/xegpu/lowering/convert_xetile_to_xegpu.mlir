// RUN: xetl-opt %s -p convert-xetile-to-xegpu --split-input-file --verify-stage xegpu | filecheck %s
// A product of 32x64 with K steps of 32: A comes in one message, B in two; the
// descriptors stand outside of the loop, and only the offsets that change are carried.

// CHECK-LABEL: gpu.func @gemm(
// CHECK-SAME:    xegpu.block_arguments = array<i64: 0, 1, 2>
// CHECK-DAG:     %[[A:.*]] = xegpu.create_nd_tdesc %A{{.*}} -> !xegpu.tensor_desc<32x16xbf16, #xegpu.block_tdesc_attr<array_length = 2 : i64>>
// CHECK-DAG:     %[[B:.*]] = xegpu.create_nd_tdesc %B{{.*}} -> !xegpu.tensor_desc<32x16xbf16, #xegpu.block_tdesc_attr<array_length = 2 : i64>>
// CHECK:         scf.for {{.*}} iter_args(%{{.*}}) -> (index, index, vector<8x16xf32>,
// CHECK-NOT:       create_nd_tdesc
// CHECK:           xegpu.load_nd %[[A]][%{{.*}}, %{{.*}}] : {{.*}} -> vector<2x32x16xbf16>
// CHECK-COUNT-2:   xegpu.load_nd %[[B]][%{{.*}}, %{{.*}}] <{packed}> : {{.*}} -> vector<2x16x16x2xbf16>
// CHECK-NOT:       load_nd
// CHECK-COUNT-32:  xegpu.dpas {{.*}} : vector<8x16xbf16>, vector<8x16x2xbf16>, vector<8x16xf32> -> vector<8x16xf32>
// CHECK-NOT:       dpas
// CHECK:           scf.yield
// CHECK-COUNT-16: xegpu.store_nd
builtin.module attributes {xetile.device = "pvc"} {
  gpu.module @m {
    gpu.func @gemm(%A: memref<?x?xbf16, strided<[?, 1]>>, %B: memref<?x?xbf16, strided<[?, 1]>>, %C: memref<?x?xf32, strided<[?, 1]>>) kernel {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %x = gpu.block_id x
      %row = arith.muli %x, %c32 : index
      %ab, %ao, %a0, %a1, %as, %a2 = memref.extract_strided_metadata %A : memref<?x?xbf16, strided<[?, 1]>> -> memref<bf16>, index, index, index, index, index
      %bb, %bo, %b0, %b1, %bs, %b2 = memref.extract_strided_metadata %B : memref<?x?xbf16, strided<[?, 1]>> -> memref<bf16>, index, index, index, index, index
      %cb, %co, %d0, %d1, %cs, %c2 = memref.extract_strided_metadata %C : memref<?x?xf32, strided<[?, 1]>> -> memref<f32>, index, index, index, index, index
      %ta = xetile.init_tile %A[%row, 0], [%a0, %a1], [%as, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<32x32xbf16>
      %tb = xetile.init_tile %B[0, 0], [%b0, %b1], [%bs, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xetile.tile<32x64xbf16>
      %zero = arith.constant dense<0.0> : vector<32x64xf32>
      %r:3 = scf.for %i = %c0 to %a1 step %c32 iter_args(%pa = %ta, %pb = %tb, %acc = %zero) -> (!xetile.tile<32x32xbf16>, !xetile.tile<32x64xbf16>, vector<32x64xf32>) {
        %a = xetile.load_tile %pa : !xetile.tile<32x32xbf16> -> vector<32x32xbf16>
        %b = xetile.load_tile %pb : !xetile.tile<32x64xbf16> -> vector<32x64xbf16>
        %s = xetile.tile_mma %a, %b, %acc : vector<32x32xbf16>, vector<32x64xbf16>, vector<32x64xf32> -> vector<32x64xf32>
        %na = xetile.update_tile_offset %pa, [0, 32] : !xetile.tile<32x32xbf16>
        %nb = xetile.update_tile_offset %pb, [32, 0] : !xetile.tile<32x64xbf16>
        scf.yield %na, %nb, %s : !xetile.tile<32x32xbf16>, !xetile.tile<32x64xbf16>, vector<32x64xf32>
      }
      %tc = xetile.init_tile %C[%row, 0], [%d0, %d1], [%cs, 1] : memref<?x?xf32, strided<[?, 1]>> -> !xetile.tile<32x64xf32>
      xetile.store_tile %r#2, %tc : vector<32x64xf32>, !xetile.tile<32x64xf32>
      gpu.return
    }
  }
}

// -----
// A from a tile of its transpose: even rows and odd rows, as words have them. So the loop
// carries the sums, which are in order again behind it.

// CHECK-LABEL: gpu.func @parted(
// CHECK:         scf.for {{.*}} iter_args({{.*}}) -> (vector<8x16xf32>, vector<8x16xf32>)
// CHECK:         %[[W:.*]] = xegpu.load_nd {{.*}} <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xi32> -> vector<8x16xi32>
// CHECK:         %[[P:.*]] = vector.transpose {{.*}}, [2, 0, 1] : vector<8x16x2xbf16> to vector<2x8x16xbf16>
// CHECK:         %[[EVEN:.*]] = vector.extract %[[P]][0] : vector<8x16xbf16> from vector<2x8x16xbf16>
// CHECK:         %[[ODD:.*]] = vector.extract %[[P]][1]
// CHECK:         xegpu.dpas %[[EVEN]]
// CHECK:         xegpu.dpas %[[ODD]]
// CHECK:         scf.yield
// CHECK:         vector.insert {{.*}} : vector<16xf32> into vector<8x16xf32>
// CHECK:         xegpu.store_nd
builtin.module attributes {xetile.device = "pvc"} {
  gpu.module @m {
    gpu.func @parted(%A: memref<64x64xbf16>, %B: memref<64x64xbf16>, %C: memref<64x64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %zero = arith.constant dense<0.0> : vector<16x16xf32>
      %r = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %zero) -> (vector<16x16xf32>) {
        %ta = xetile.init_tile %A[%k, 0] : memref<64x64xbf16> -> !xetile.tile<16x16xbf16>
        %tb = xetile.init_tile %B[%k, 0] : memref<64x64xbf16> -> !xetile.tile<16x16xbf16>
        %a = xetile.load_tile %ta : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
        %at = xetile.tile_transpose %a, [1, 0] : vector<16x16xbf16> -> vector<16x16xbf16>
        %b = xetile.load_tile %tb : !xetile.tile<16x16xbf16> -> vector<16x16xbf16>
        %s = xetile.tile_mma %at, %b, %acc : vector<16x16xbf16>, vector<16x16xbf16>, vector<16x16xf32> -> vector<16x16xf32>
        scf.yield %s : vector<16x16xf32>
      }
      %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<16x16xf32>
      xetile.store_tile %r, %tc : vector<16x16xf32>, !xetile.tile<16x16xf32>
      gpu.return
    }
  }
}

// -----
// A tile that two products need, as it is and transposed, is loaded once for each.

// CHECK-LABEL: gpu.func @both_ways(
// CHECK:         xegpu.load_nd
// CHECK-COUNT-4: xegpu.load_nd {{.*}} <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xi32> -> vector<8x16xi32>
// CHECK:         xegpu.load_nd {{.*}} <{packed}> : {{.*}} -> vector<2x16x16x2xf16>
// CHECK-NOT:     load_nd
// CHECK-NOT:     vector.transpose
// CHECK:         gpu.return
builtin.module attributes {xetile.device = "pvc"} {
  gpu.module @m {
    gpu.func @both_ways(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
      %ta = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<8x32xf16>
      %a = xetile.load_tile %ta : !xetile.tile<8x32xf16> -> vector<8x32xf16>
      %tb = xetile.init_tile %B[0, 0] : memref<64x64xf16> -> !xetile.tile<32x32xf16>
      %b = xetile.load_tile %tb : !xetile.tile<32x32xf16> -> vector<32x32xf16>
      %bt = xetile.tile_transpose %b, [1, 0] : vector<32x32xf16> -> vector<32x32xf16>
      %c = xetile.tile_mma %a, %bt : vector<8x32xf16>, vector<32x32xf16> -> vector<8x32xf32>
      %d = xetile.tile_mma %a, %b, %c : vector<8x32xf16>, vector<32x32xf16>, vector<8x32xf32> -> vector<8x32xf32>
      %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<8x32xf32>
      xetile.store_tile %d, %tc : vector<8x32xf32>, !xetile.tile<8x32xf32>
      gpu.return
    }
  }
}

// -----
// B from a tile of its transpose: words of two elements, transposed by the message.

// CHECK-LABEL: gpu.func @transposed(
// CHECK-COUNT-2: xegpu.load_nd {{.*}} <{transpose = array<i64: 1, 0>}> : !xegpu.tensor_desc<16x8xi32> -> vector<8x16xi32>
// CHECK:         xegpu.load_nd {{.*}} -> vector<2x8x16xf16>
// CHECK-NOT:     vector.transpose
// CHECK:         xegpu.dpas {{.*}}vector<8x16x2xf16>
builtin.module attributes {xetile.device = "pvc"} {
  gpu.module @m {
    gpu.func @transposed(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>) kernel {
      %ta = xetile.init_tile %A[0, 0] : memref<64x64xf16> -> !xetile.tile<8x32xf16>
      %tb = xetile.init_tile %B[0, 0] : memref<64x64xf16> -> !xetile.tile<16x32xf16>
      %tc = xetile.init_tile %C[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
      %b = xetile.load_tile %tb : !xetile.tile<16x32xf16> -> vector<16x32xf16>
      %bt = xetile.tile_transpose %b, [1, 0] : vector<16x32xf16> -> vector<32x16xf16>
      %a = xetile.load_tile %ta : !xetile.tile<8x32xf16> -> vector<8x32xf16>
      %c = xetile.tile_mma %a, %bt : vector<8x32xf16>, vector<32x16xf16> -> vector<8x16xf32>
      xetile.store_tile %c, %tc : vector<8x16xf32>, !xetile.tile<8x16xf32>
      gpu.return
    }
  }
}

// -----
// Rows of 33 columns: of the last fragment one lane is stored; reductions mask the rest.

// CHECK-LABEL: gpu.func @rows(
// CHECK-COUNT-3: xegpu.load_nd
// CHECK:         arith.select {{.*}}vector<1x16xf32>
// CHECK:         vector.multi_reduction <maximumf>, {{.*}} [1] : vector<1x16xf32> to vector<1xf32>
// CHECK-COUNT-2: xegpu.store_nd
// CHECK:         xegpu.store {{.*}} : vector<16xf32>, i64, vector<16xindex>, vector<16xi1>
builtin.module attributes {xetile.device = "pvc"} {
  gpu.module @m {
    gpu.func @rows(%X: memref<64x64xf32>) kernel {
      %t = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !xetile.tile<1x33xf32>
      %v = xetile.load_tile %t : !xetile.tile<1x33xf32> -> vector<1x33xf32>
      %m = xetile.tile_reduce <maximumf>, %v [1] : vector<1x33xf32> -> vector<1x1xf32>
      %b = xetile.tile_broadcast %m [1] : vector<1x1xf32> -> vector<1x33xf32>
      xetile.store_tile %b, %t : vector<1x33xf32>, !xetile.tile<1x33xf32>
      gpu.return
    }
  }
}

// -----
// Without block messages: columns that are no multiple of what a message takes, and
// a pitch that it does not; lanes move the same blocks.

// CHECK-LABEL: gpu.func @lanes(
// CHECK:         create_nd_tdesc {{.*}} : memref<64x61xf32> -> !xegpu.tensor_desc<8x16xf32>
// CHECK:         load_nd
builtin.module attributes {xetile.device = "pvc"} {
  gpu.module @m {
    gpu.func @lanes(%X: memref<64x61xf32>) kernel attributes {xegpu.no_blocks} {
      %t = xetile.init_tile %X[0, 3] : memref<64x61xf32> -> !xetile.tile<8x16xf32>
      %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      gpu.return
    }
  }
}

// -----
// No dimension without gaps: lanes move blocks all the same, in any kernel, and the
// transpose of one is one, too. B is packed where it is loaded. Nothing is asked for.

// CHECK-LABEL: gpu.func @strided(
// CHECK-SAME:    xegpu.block_arguments = array<i64>
// CHECK:         %{{[0-9]+}}, %{{[0-9]+}}, %{{.*}}, %{{.*}}, %[[BD:.*]], %[[BR:.*]] = memref.extract_strided_metadata %B
// CHECK-DAG:     %[[A:.*]] = xegpu.create_nd_tdesc {{.*}} strides : [%{{.*}}, %{{.*}}] : memref{{.*}} -> !xegpu.tensor_desc<8x16xf16>
// CHECK-DAG:     %[[B:.*]] = xegpu.create_nd_tdesc {{.*}} strides : [%[[BR]], %[[BD]]] : {{.*}} -> !xegpu.tensor_desc<16x16xf16>
// CHECK-DAG:     xegpu.load_nd %[[A]]{{.*}} -> vector<8x16xf16>
// CHECK-DAG:     xegpu.load_nd %[[B]]{{.*}} <{packed}> : {{.*}} -> vector<8x16x2xf16>
// CHECK-NOT:     prefetch
// CHECK-NOT:     vector.transpose
// CHECK:         xegpu.dpas
// CHECK:         xegpu.store_nd
builtin.module attributes {xetile.device = "pvc"} {
  gpu.module @m {
    gpu.func @strided(%A: memref<?x?xf16, strided<[?, ?]>>, %B: memref<?x?xf16, strided<[?, ?]>>, %C: memref<?x?xf32, strided<[?, ?]>>) kernel {
      %ab, %ao, %az:2, %as:2 = memref.extract_strided_metadata %A : memref<?x?xf16, strided<[?, ?]>> -> memref<f16>, index, index, index, index, index
      %bb, %bo, %bz:2, %bs:2 = memref.extract_strided_metadata %B : memref<?x?xf16, strided<[?, ?]>> -> memref<f16>, index, index, index, index, index
      %cb, %co, %cz:2, %cs:2 = memref.extract_strided_metadata %C : memref<?x?xf32, strided<[?, ?]>> -> memref<f32>, index, index, index, index, index
      %ta = xetile.init_tile %A[0, 0], [%az#0, %az#1], [%as#0, %as#1] : memref<?x?xf16, strided<[?, ?]>> -> !xetile.tile<8x16xf16>
      %tb = xetile.init_tile %B[0, 0], [%bz#0, %bz#1], [%bs#0, %bs#1] : memref<?x?xf16, strided<[?, ?]>> -> !xetile.tile<16x16xf16>
      %tc = xetile.init_tile %C[0, 0], [%cz#0, %cz#1], [%cs#0, %cs#1] : memref<?x?xf32, strided<[?, ?]>> -> !xetile.tile<8x16xf32>
      xetile.prefetch_tile %ta : !xetile.tile<8x16xf16>
      %a = xetile.load_tile %ta : !xetile.tile<8x16xf16> -> vector<8x16xf16>
      %b = xetile.load_tile %tb : !xetile.tile<16x16xf16> -> vector<16x16xf16>
      %t = xetile.tile_transpose %b, [1, 0] : vector<16x16xf16> -> vector<16x16xf16>
      %c = xetile.tile_mma %a, %t : vector<8x16xf16>, vector<16x16xf16> -> vector<8x16xf32>
      xetile.store_tile %c, %tc : vector<8x16xf32>, !xetile.tile<8x16xf32>
      gpu.return
    }
  }
}

// -----
// An array of one dimension is a matrix of rows of 64 bytes if all tiles are such rows.

// CHECK-LABEL: gpu.func @folded(
// CHECK-SAME:    xegpu.block_arguments = array<i64: 0, 1>, xegpu.folded
// CHECK:         %[[ROWS:.*]] = arith.divui %n, %{{.*}} : index
// CHECK:         xegpu.create_nd_tdesc %{{.*}}, shape : [%[[ROWS]], 16], strides : [16, 1] {{.*}} -> !xegpu.tensor_desc<16x16xf32>
// CHECK-COUNT-1: xegpu.load_nd
// CHECK-NOT:     xegpu.load_nd
// CHECK-COUNT-2: xegpu.store_nd {{.*}} : vector<8x16xf32>
builtin.module attributes {xetile.device = "pvc"} {
  gpu.module @m {
    gpu.func @folded(%X: memref<?xf32, strided<[1]>>, %Y: memref<4096xf32>) kernel {
      %c256 = arith.constant 256 : index
      %x = gpu.block_id x
      %at = arith.muli %x, %c256 : index
      %b, %o, %n, %s = memref.extract_strided_metadata %X : memref<?xf32, strided<[1]>> -> memref<f32>, index, index, index
      %row = memref.reinterpret_cast %X to offset: [0], sizes: [1, %n], strides: [%n, 1] : memref<?xf32, strided<[1]>> to memref<1x?xf32, strided<[?, 1]>>
      %to = memref.reinterpret_cast %Y to offset: [0], sizes: [1, 4096], strides: [4096, 1] : memref<4096xf32> to memref<1x4096xf32>
      %t = xetile.init_tile %row[0, %at], [1, %n], [%n, 1] : memref<1x?xf32, strided<[?, 1]>> -> !xetile.tile<1x256xf32>
      %v = xetile.load_tile %t : !xetile.tile<1x256xf32> -> vector<1x256xf32>
      %u = xetile.init_tile %to[0, %at] : memref<1x4096xf32> -> !xetile.tile<1x256xf32>
      xetile.store_tile %v, %u : vector<1x256xf32>, !xetile.tile<1x256xf32>
      gpu.return
    }
  }
}
