// A change of layout under its three names, with and without the old map, through a branch.
// launch: k (2) (4, 1, 1)
// A: 64x32 f32 integers
// n: 1
// B: 64x32 f32 zeros
// expect B = np.concatenate([A[:32] + 1, A[32:] * 2])
#h = #xetile.wg_map<sg_layout = [4, 1], sg_data = [8, 32]>
#v = #xetile.wg_map<sg_layout = [1, 4], sg_data = [32, 8]>
gpu.module @w {
  gpu.func @k(%A: memref<64x32xf32>, %n: index, %B: memref<64x32xf32>) kernel {
    %c32 = arith.constant 32 : index
    %x = gpu.block_id x
    %row = arith.muli %x, %c32 : index
    %t = xetile.init_tile %A[%row, 0] : memref<64x32xf32> -> !xetile.tile<32x32xf32, #h>
    %a = xetile.load_tile %t : !xetile.tile<32x32xf32, #h> -> vector<32x32xf32>
    %b = xetile.convert_layout %a {wg_map_result = #v} : vector<32x32xf32>
    %one = arith.constant {map = #v} dense<1.0> : vector<32x32xf32>
    %first = arith.cmpi slt, %x, %n : index
    %r = scf.if %first -> (vector<32x32xf32>) {
      %s = arith.addf %b, %one {map = #v} : vector<32x32xf32>
      scf.yield %s : vector<32x32xf32>
    } else {
      %s = arith.addf %b, %b {map = #v} : vector<32x32xf32>
      scf.yield %s : vector<32x32xf32>
    }
    %c = xetile.tile_conv_layout %r {map = #h, source_map = #v} : vector<32x32xf32>
    %d = xetile.conv_layout %c {wg_map_source = #h, wg_map_result = #v} : vector<32x32xf32> -> vector<32x32xf32>
    %o = xetile.init_tile %B[%row, 0] : memref<64x32xf32> -> !xetile.tile<32x32xf32, #v>
    xetile.store_tile %d, %o : vector<32x32xf32>, !xetile.tile<32x32xf32, #v>
    gpu.return
  }
}
