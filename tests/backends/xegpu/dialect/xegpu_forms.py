"""Every form of every operation of XeGPU, as text of MLIR 22."""

BLOCKS = """
gpu.module @m {
  gpu.func @blocks(%A: memref<256x128xf16>, %D: memref<?x?xf16>,
                   %S: memref<256x128xf32>, %p: i64, %up: ui64,
                   %h: index, %w: index, %i: index, %j: index) kernel
      attributes {known_block_size = array<i32: 512, 1, 1>,
                  intel_reqd_sub_group_size = 16 : i32} {
    %t = xegpu.create_nd_tdesc %A : memref<256x128xf16>
      -> !xegpu.tensor_desc<8x16xf16>
    %two = xegpu.create_nd_tdesc %A[%i, 0] : memref<256x128xf16>
      -> !xegpu.tensor_desc<16x16xf16, #xegpu.block_tdesc_attr<array_length = 2>>
    %free = xegpu.create_nd_tdesc %A : memref<256x128xf16>
      -> !xegpu.tensor_desc<16x16xf16, #xegpu.block_tdesc_attr<memory_space = global,
           array_length = 2 : i64, boundary_check = false>>
    %usual = xegpu.create_nd_tdesc %A : memref<256x128xf16>
      -> !xegpu.tensor_desc<16x16xf16, #xegpu.block_tdesc_attr<>>
    %raw = xegpu.create_nd_tdesc %p, shape: [%h, %w], strides: [%w, 1] : i64
      -> !xegpu.tensor_desc<8x16xf16>
    %raw2 = xegpu.create_nd_tdesc %up, shape: [128, %w], strides: [%w, 1] : ui64
      -> !xegpu.tensor_desc<8x16xf16>
    %dyn = xegpu.create_nd_tdesc %D, shape: [%h, %w], strides: [%w, 1]
      : memref<?x?xf16> -> !xegpu.tensor_desc<16x16xf16>
    %dyn2 = xegpu.create_nd_tdesc %D[%i, %j], shape: [%h, %w], strides: [%w, 1]
      : memref<?x?xf16> -> !xegpu.tensor_desc<16x16xf16>
    %wide = xegpu.create_nd_tdesc %S : memref<256x128xf32>
      -> !xegpu.tensor_desc<16x8xf32>
    xegpu.prefetch_nd %t[%i, %j] <{l1_hint = #xegpu.cache_hint<cached>,
      l2_hint = #xegpu.cache_hint<uncached>}> : !xegpu.tensor_desc<8x16xf16>
    xegpu.prefetch_nd %two
      : !xegpu.tensor_desc<16x16xf16, #xegpu.block_tdesc_attr<array_length = 2>>
    %v = xegpu.load_nd %t[%i, %j] <{l3_hint = #xegpu.cache_hint<streaming>}>
      {note = 1 : i32} : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    %v2 = xegpu.load_nd %two
      : !xegpu.tensor_desc<16x16xf16, #xegpu.block_tdesc_attr<array_length = 2>>
      -> vector<2x16x16xf16>
    %b = xegpu.load_nd %dyn[%i, 16] <{packed}>
      : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    %f = xegpu.load_nd %wide[%i, %j] <{transpose = array<i64: 1, 0>}>
      : !xegpu.tensor_desc<16x8xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %t[%i, 0] <{l1_hint = #xegpu.cache_hint<write_back>}>
      : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>
    gpu.return
  }
}
"""

SCATTERED = """
func.func @scattered(%F: memref<1024xf32>, %L: memref<1024xf32, 3>, %p: i64,
                     %off: vector<16xindex>, %mask: vector<16xi1>,
                     %one: index, %bit: i1, %rows: vector<8x16xindex>,
                     %bits: vector<8x16xi1>, %x: vector<8x16xf32>) {
  %g = xegpu.load %F[%off], %mask <{chunk_size = 8 : i64}>
    : memref<1024xf32>, vector<16xindex>, vector<16xi1> -> vector<16x8xf32>
  %g1 = xegpu.load %F[%off], %mask <{l1_hint = #xegpu.cache_hint<cached>}>
    : memref<1024xf32>, vector<16xindex>, vector<16xi1> -> vector<16xf32>
  %g2 = xegpu.load %p[%off], %mask
    : i64, vector<16xindex>, vector<16xi1> -> vector<16xf32>
  %g3 = xegpu.load %p[%one], %bit : i64, index, i1 -> f32
  xegpu.store %g1, %L[%off], %mask
    : vector<16xf32>, memref<1024xf32, 3>, vector<16xindex>, vector<16xi1>
  xegpu.store %x, %F[%rows], %bits <{l1_hint = #xegpu.cache_hint<write_through>}>
    : vector<8x16xf32>, memref<1024xf32>, vector<8x16xindex>, vector<8x16xi1>
  xegpu.prefetch %F[%off] : memref<1024xf32>, vector<16xindex>
  xegpu.prefetch %p[%off] <{offset_align_byte = 4}> : i64, vector<16xindex>
  %d = xegpu.create_tdesc %F, %off : memref<1024xf32>, vector<16xindex>
    -> !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>
  %d8 = xegpu.create_tdesc %p, %off : i64, vector<16xindex>
    -> !xegpu.tensor_desc<16x8xf32, #xegpu.scatter_tdesc_attr<chunk_size = 8>>
  %dl = xegpu.create_tdesc %L, %off : memref<1024xf32, 3>, vector<16xindex>
    -> !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<memory_space = slm>>
  %g4 = xegpu.load %d, %mask
    : !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>, vector<16xi1>
    -> vector<16xf32>
  xegpu.store %g4, %d, %mask : vector<16xf32>,
    !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>, vector<16xi1>
  xegpu.prefetch %d : !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>
  %r = xegpu.atomic_rmw addf %d, %mask, %g4
    : !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>, vector<16xi1>,
      vector<16xf32> -> vector<16xf32>
  %r2 = xegpu.atomic_rmw maximumf %d, %mask, %g4 {note}
    : !xegpu.tensor_desc<16xf32, #xegpu.scatter_tdesc_attr<>>, vector<16xi1>,
      vector<16xf32> -> vector<16xf32>
  return
}
"""

PRODUCTS = """
#l = #xegpu.layout<sg_layout = [8,4], sg_data = [32,32], inst_data = [8,16],
                   lane_layout = [1,16], lane_data = [1,1], order = [1,0]>
#s = #xegpu.slice<#l, dims = [1]>
func.func @products(%a: vector<8x16xf16>, %b: vector<16x16xf16>,
                    %p: vector<8x16x2xf16>, %c: vector<8x16xf32>,
                    %q: vector<8x32xi8>, %r: vector<8x16x4xi8>, %z: vector<8xf32>,
                    %x: vector<8x8xf32>, %A: memref<256x128xf16>,
                    %i: index) {
  %0 = xegpu.dpas %a, %b, %c
    : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32> -> vector<8x16xf32>
  %1 = xegpu.dpas %a, %p : vector<8x16xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
  %2 = xegpu.dpas %a, %b, %c {layout_a = #l, layout_b = #l, layout_cd = #l}
    : vector<8x16xf16>, vector<16x16xf16>, vector<8x16xf32> -> vector<8x16xf32>
  %3 = xegpu.dpas %q, %r {a_unsigned}
    : vector<8x32xi8>, vector<8x16x4xi8> -> vector<8x16xi32>
  %4 = xegpu.dpas %x, %c, %c
    : vector<8x8xf32>, vector<8x16xf32>, vector<8x16xf32> -> vector<8x16xf32>
  %6 = vector.multi_reduction <add>, %c, %z {layout_result_0 = #s} [1]
    : vector<8x16xf32> to vector<8xf32>
  %7 = xegpu.create_nd_tdesc %A : memref<256x128xf16>
    -> !xegpu.tensor_desc<8x16xf16, #l>
  %8 = xegpu.create_nd_tdesc %A : memref<256x128xf16> -> !xegpu.tensor_desc<8x16xf16,
    #xegpu.block_tdesc_attr<array_length = 2>, #l>
  %9 = xegpu.load_nd %7[%i, %i] <{layout = #l}>
    : !xegpu.tensor_desc<8x16xf16, #l> -> vector<8x16xf16>
  xegpu.fence memory_kind = slm, fence_scope = workgroup
  xegpu.fence memory_kind = global, fence_scope = gpu
  return
}
"""

SHARED = """
func.func @shared(%slm: memref<4096xi8, 3>, %v: vector<8x16xf16>,
                  %i: index, %j: index, %b8: i8, %c8: i8) {
  %m = xegpu.create_mem_desc %slm : memref<4096xi8, 3> -> !xegpu.mem_desc<32x64xf16,
    #xegpu.mem_layout<stride = [1, 32], block = [16, 16]>>
  %m2 = xegpu.create_mem_desc %slm {note} : memref<4096xi8, 3>
    -> !xegpu.mem_desc<32x64xf16>
  xegpu.store_matrix %v, %m2[0, 0] : vector<8x16xf16>, !xegpu.mem_desc<32x64xf16>
  xegpu.store_matrix %v, %m2[%i, 0] <{subgroup_block_io}>
    : vector<8x16xf16>, !xegpu.mem_desc<32x64xf16>, index
  %y = xegpu.load_matrix %m2[%i, %j]
    : !xegpu.mem_desc<32x64xf16>, index, index -> vector<8x16xf16>
  %y2 = xegpu.load_matrix %m[%i, 16] <{subgroup_block_io}>
    : !xegpu.mem_desc<32x64xf16, #xegpu.mem_layout<block = [16, 16], stride = [1, 32]>>,
      index -> vector<8x16xf16>
  xegpu.alloc_nbarrier 8
  %nb = xegpu.init_nbarrier %b8, %c8 : i8, i8 -> !xegpu.nbarrier
  xegpu.nbarrier_arrive %nb : !xegpu.nbarrier
  xegpu.nbarrier_wait %nb : !xegpu.nbarrier
  return
}
"""

FORMS = {
    "blocks": BLOCKS,
    "scattered": SCATTERED,
    "products": PRODUCTS,
    "shared": SHARED,
}

OURS = """
func.func @ours(%v: vector<8x16xf32>, %n: i64, %ok: i1) {
  xegpu.compile_hint
  "xegpu_x.print"(%n, %v) <{template = "{} of {}",
    shapes = [array<i64>, array<i64: 8, 16>]}> : (i64, vector<8x16xf32>) -> ()
  "xegpu_x.assert"(%ok, %n) <{template = "not {}", shapes = [array<i64>]}>
    : (i1, i64) -> ()
  return
}
"""
