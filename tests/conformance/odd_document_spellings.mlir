// What the XeTile RFC writes in its listings: maps by place, `#wg_map`, types in
// parentheses, `into` and `to` behind a store, the tile first, `slm`.
// launch: k (1) (1)
// A: 16x32 bf16 integers
// B: 32x16 bf16 integers
// R: 16x1 f32 zeros
// C: 16x16 f32 zeros
// expect C = A @ B + 1
// expect R = (A @ B + 1).sum(1, keepdims=True)
#mp_a = #wg_map<sg_layout = [1, 1], sg_data = [16, 32]>
#mp_b = #wg_map<sg_layout=[1, 1], sg_data=[32, 16]>
#mp_c = #wg_map<sg_layout=[1, 1], sg_data=[16, 16]>
#mp_r = #wg_map<sg_layout=[1, 1], sg_data=[16, 1]>
gpu.module @m {
  gpu.func @k(%A: memref<16x32xbf16>, %B: memref<32x16xbf16>, %R: memref<16x1xf32>, %C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %room = memref.alloc() : memref<16x16xf32, slm>
    %ta = xetile.init_tile %A[%c0, %c0] : memref<16x32xbf16> -> !xetile.tile<16x32xbf16, #mp_a>
    %tb = xetile.init_tile %B[%c0, %c0] : memref<32x16xbf16> -> !xetile.tile<32x16xbf16, #mp_b>
    %a = xetile.load_tile %ta : !xetile.tile<16x32xbf16, #mp_a> into vector<16x32xbf16>
    %b = xetile.load_tile %tb : !xetile.tile<32x16xbf16, #mp_b> to vector<32x16xbf16>
    %bt = xetile.tile_transpose %b [1, 0] {#mp_b #mp_a} : vector<32x16xbf16> -> vector<16x32xbf16>
    %bb = xetile.tile_transpose %bt [1, 0] {#mp_b} : vector<16x32xbf16> -> vector<32x16xbf16>
    %p = xetile.tile_mma %a, %bb {#mp_a #mp_b #mp_c} : (vector<16x32xbf16>, vector<32x16xbf16>) -> vector<16x16xf32>
    %zero = arith.constant {map = #mp_c} dense<0.0> : vector<16x16xf32>
    %q = xetile.tile_mma %a, %b, %zero {#mp_c} : vector<16x32xbf16>, vector<32x16xbf16>, vector<16x16xf32> into vector<16x16xf32>
    %one = arith.constant dense<1.0> : vector<16x16xf32>
    %half = arith.constant dense<0.5> : vector<16x16xf32>
    %both = arith.addf %p, %q : vector<16x16xf32>
    %mean = arith.mulf %both, %half : vector<16x16xf32>
    %sum = arith.addf %mean, %one : vector<16x16xf32>
    %tr = xetile.init_tile %room[%c0, %c0] : memref<16x16xf32, slm> -> !xetile.tile<16x16xf32, #xetile.tile_attr<memory_space = 3, wg_map = #mp_c>>
    xetile.store_tile %tr, %sum : vector<16x16xf32> into !xetile.tile<16x16xf32, #xetile.tile_attr<memory_space = 3, wg_map = #mp_c>>
    gpu.barrier
    %back = xetile.load_tile %tr : !xetile.tile<16x16xf32, #xetile.tile_attr<memory_space = 3, wg_map = #mp_c>> -> vector<16x16xf32>
    %tc = xetile.init_tile %C[%c0, %c0] : memref<16x16xf32> -> !xetile.tile<16x16xf32, #mp_c>
    xetile.store_tile %tc, %back : (!xetile.tile<16x16xf32, #mp_c>, vector<16x16xf32>)
    %r = xetile.tile_reduce <add>, %sum [1] {#mp_c #mp_r} : vector<16x16xf32> -> vector<16x1xf32>
    %to = xetile.init_tile %R[%c0, %c0] : memref<16x1xf32> -> !xetile.tile<16x1xf32, #mp_r>
    xetile.store_tile %r, %to : vector<16x1xf32> to !xetile.tile<16x1xf32, #mp_r>
    gpu.return
  }
}
