// RUN: xetl-opt %s -p add-unaligned-kernel --split-input-file | filecheck %s
// Its tile may be moved by messages that want aligned rows: the launch may choose.

// CHECK-LABEL: gpu.func @blocks(
// CHECK-NOT:     xegpu.no_blocks
// CHECK:         xetile.load_tile
// CHECK-LABEL: gpu.func @blocks_unaligned(
// CHECK-SAME:    xegpu.no_blocks
// CHECK:         xetile.load_tile
gpu.module @m {
  gpu.func @blocks(%X: memref<64x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----
// Nothing is known of what lies at an address: lanes move it in any case.

// CHECK-LABEL: gpu.func @address(
// CHECK-NOT:   _unaligned
gpu.module @m {
  gpu.func @address(%X: i64) kernel {
    %t = xetile.init_tile %X[0, 0], [64, 64], [64, 1] : i64 -> !xetile.tile<8x16xf32>
    %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----
// Shared memory knows no block messages.

// CHECK-LABEL: gpu.func @shared(
// CHECK-NOT:   _unaligned
gpu.module @m {
  gpu.func @shared() kernel {
    %m = memref.alloc() : memref<8x16xf32, 3>
    %t = xetile.init_tile %m[0, 0] : memref<8x16xf32, 3> -> !xetile.tile<8x16xf32, #xetile.tile_attr<memory_space = 3>>
    %v = xetile.load_tile %t : !xetile.tile<8x16xf32, #xetile.tile_attr<memory_space = 3>> -> vector<8x16xf32>
    gpu.return
  }
}

// -----
// Only messages can ask for something ahead.

// CHECK-LABEL: gpu.func @asks(
// CHECK:         xetile.prefetch_tile
// CHECK-LABEL: gpu.func @asks_unaligned(
// CHECK-NOT:     prefetch_tile
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @asks(%X: memref<64x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.prefetch_tile %t : !xetile.tile<8x16xf32>
    %v = xetile.load_tile %t : !xetile.tile<8x16xf32> -> vector<8x16xf32>
    gpu.return
  }
}

// -----
// Messages that ask for something ahead want aligned rows as much as those that move it.

// CHECK-LABEL: gpu.func @only_asks(
// CHECK-LABEL: gpu.func @only_asks_unaligned(
// CHECK-NOT:     prefetch_tile
gpu.module @m {
  gpu.func @only_asks(%X: memref<64x64xf32>) kernel {
    %t = xetile.init_tile %X[0, 0] : memref<64x64xf32> -> !xetile.tile<8x16xf32>
    xetile.prefetch_tile %t : !xetile.tile<8x16xf32>
    gpu.return
  }
}
