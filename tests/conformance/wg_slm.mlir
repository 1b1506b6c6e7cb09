// Workgroup tiles in shared memory: stored by rows, read by columns.
// launch: k (1) (4, 1, 1)
// A: 64x64 f32 integers
// B: 64x64 f32 zeros
// expect B = A.T
#h = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>
#v = #xetile.wg_map<sg_layout = [1, 4], sg_data = [64, 16]>
gpu.module @w {
  gpu.func @k(%A: memref<64x64xf32>, %B: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %bytes = memref.alloc() : memref<16384xi8, 3>
    %slm = memref.view %bytes[%c0][] : memref<16384xi8, 3> to memref<64x64xf32, 3>
    %t = xetile.init_tile %A[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #h>
    %a = xetile.load_tile %t : !xetile.tile<64x64xf32, #h> -> vector<64x64xf32>
    %s = xetile.init_tile %slm[0, 0] : memref<64x64xf32, 3> -> !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = #h, memory_space = 3 : i32>>
    xetile.store_tile %a, %s : vector<64x64xf32>, !xetile.tile<64x64xf32, #xetile.tile_attr<memory_space = 3, wg_map = #h>>
    gpu.barrier
    %r = xetile.init_tile %slm[0, 0] : memref<64x64xf32, 3> -> !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = #v, memory_space = 3 : i64>>
    %b = xetile.load_tile %r : !xetile.tile<64x64xf32, #xetile.tile_attr<wg_map = #v, memory_space = 3>> -> vector<64x64xf32>
    %c = vector.transpose %b, [1, 0] {map = #h} : vector<64x64xf32> to vector<64x64xf32>
    %o = xetile.init_tile %B[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #h>
    xetile.store_tile %c, %o : vector<64x64xf32>, !xetile.tile<64x64xf32, #h>
    gpu.return
  }
}
