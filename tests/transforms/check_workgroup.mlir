// RUN: xetl-opt %s -p 'check-workgroup{slm_limit=4096}' --split-input-file --verify-diagnostics | filecheck %s
// The rules of a kernel as a whole; what keeps them is not changed.

// All maps are for four subgroups, as [2, 2], [4, 1] and down the columns.
// CHECK-LABEL: @equal_counts
#square = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8]>
#tall = #xetile.wg_map<sg_layout = [4, 1], sg_data = [4, 16]>
#columns = #xetile.layout<sg_layout = [2, 2], sg_data = [8, 8], order = [0, 1]>
gpu.module @m {
  gpu.func @equal_counts(%v: vector<16x16xf32>) kernel {
    %a = arith.addf %v, %v {map = #square} : vector<16x16xf32>
    %b = xetile.tile_conv_layout %a {map = #tall, source_map = #square} : vector<16x16xf32>
    %c = xetile.tile_transpose %b, [1, 0] {map = #columns} : vector<16x16xf32> -> vector<16x16xf32>
    gpu.return
  }
}
// -----
// CHECK: error[X0704]: `arith.addf`: its map is for 8 subgroups, another one of the kernel for 4
// CHECK-NEXT: --> {{.*}}:9:10
// CHECK: the other map is that of `xetile.init_tile` at line 7
gpu.module @m {
  gpu.func @other_counts(%m: memref<64x64xf32>, %v: vector<16x16xf32>) kernel {
    %t = xetile.init_tile %m[0, 0] : memref<64x64xf32> -> !xetile.tile<16x16xf32, #xetile.tile_attr<wg_map = <sg_layout = [2, 2], sg_data = [8, 8]>>>
    // Sharing is legal everywhere; the number of those who share is not free.
    %a = arith.addf %v, %v {map = #xetile.wg_map<sg_layout = [4, 2], sg_data = [8, 8]>} : vector<16x16xf32>
    gpu.return
  }
}
// -----
// CHECK: error[X0704]: `xetile.tile_mma`: its map is for 2 subgroups
gpu.module @m {
  gpu.func @of_an_operand(%v: vector<16x16xf32>) kernel {
    %a = arith.addf %v, %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8]>} : vector<16x16xf32>
    %d = xetile.tile_mma %a, %v {wg_map_b = #xetile.layout<sg_layout = [1, 2], sg_data = [16, 8], order = [0, 1]>} : vector<16x16xf32>, vector<16x16xf32> -> vector<16x16xf32>
    gpu.return
  }
}
// -----
// Two arrays of 2048 bytes are all there is; other memory is not counted.
// CHECK-LABEL: @memory_that_fits
gpu.module @m {
  gpu.func @memory_that_fits() kernel {
    %a = memref.alloc() : memref<16x32xf32, 3>
    %b = memref.alloca() : memref<2048xi1, 3>
    %c = memref.alloc() : memref<4096xf32>
    gpu.return
  }
}
// -----
// CHECK: error[X0706]: `memref.alloc`: asks for 2050 bytes of shared memory beside 2048 bytes of other arrays, but 4096 are allowed
gpu.module @m {
  gpu.func @memory_that_does_not(%i: i1) kernel {
    %a = memref.alloc() : memref<16x32xf32, 3>
    scf.if %i {
      %b = memref.alloc() : memref<1025xf16, 3>
    }
    gpu.return
  }
}
// -----
// Each kernel of a module has its own workgroups and its own memory.
// CHECK-LABEL: @one_of_two
// CHECK-LABEL: @other_of_two
gpu.module @m {
  gpu.func @one_of_two(%v: vector<16x16xf32>) kernel {
    %a = memref.alloc() : memref<32x32xf32, 3>
    %b = arith.addf %v, %v {map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8]>} : vector<16x16xf32>
    gpu.return
  }
  gpu.func @other_of_two(%v: vector<16x16xf32>) kernel {
    %a = memref.alloc() : memref<32x32xf32, 3>
    %b = arith.addf %v, %v {map = #xetile.wg_map<sg_layout = [2, 4], sg_data = [8, 4]>} : vector<16x16xf32>
    gpu.return
  }
}
// -----
// Memory that functions ask for is counted where the kernel calls any.
// CHECK: `memref.alloc`: asks for 4 bytes of shared memory beside 4096 bytes
gpu.module @m {
  func.func @helper() {
    %a = memref.alloc() : memref<1xf32, 3>
    return
  }
  gpu.func @calls() kernel {
    %a = memref.alloc() : memref<32x32xf32, 3>
    func.call @helper() : () -> ()
    gpu.return
  }
}
