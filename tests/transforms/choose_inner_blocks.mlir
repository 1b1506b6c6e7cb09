// RUN: xetl-opt %s -p choose-inner-blocks --verify-stage xetile-blocked | filecheck %s
// RUN: xetl-opt %s -p choose-inner-blocks{device=bmg} --verify-stage xetile-blocked | filecheck %s --check-prefix=BMG

// CHECK: builtin.module attributes {xetile.device = "pvc"}
// BMG: builtin.module attributes {xetile.device = "bmg"}

// The product asks A for (8, 16), B for (16, 16), C for (8, 16): loads, prefetches,
// the accumulator and the store follow, and nothing is packed.
// CHECK-LABEL: @gemm
// CHECK-NOT:   tile_pack
// CHECK-NOT:   tile_unpack
// CHECK:       arith.constant dense<0.0{{.*}}> : vector<4x2x8x16xf32>
// CHECK:       init_tile %a{{.*}}inner_blocks = [8, 16]
// CHECK:       init_tile %b{{.*}}inner_blocks = [16, 16]
// CHECK:       init_tile %c{{.*}}inner_blocks = [8, 16]
// CHECK:       load_tile {{.*}} -> vector<4x2x8x16xf16>
// CHECK:       load_tile {{.*}} -> vector<2x2x16x16xf16>
// CHECK:       prefetch_tile {{.*}}inner_blocks = [8, 16]
// CHECK:       tile_mma {{.*}} -> vector<4x2x8x16xf32>
// CHECK:       store_tile {{.*}} : vector<4x2x8x16xf32>
func.func @gemm(%a: memref<64x128xf16>, %b: memref<128x64xf16>, %c: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : vector<32x32xf32>
  %ta = xetile.init_tile %a[0, 0] : memref<64x128xf16> -> !xetile.tile<32x32xf16>
  %tb = xetile.init_tile %b[0, 0] : memref<128x64xf16> -> !xetile.tile<32x32xf16>
  %tc = xetile.init_tile %c[0, 0] : memref<64x64xf32> -> !xetile.tile<32x32xf32>
  %r:3 = scf.for %k = %c0 to %c128 step %c32 iter_args(%x = %ta, %y = %tb, %acc = %zero) -> (!xetile.tile<32x32xf16>, !xetile.tile<32x32xf16>, vector<32x32xf32>) {
    %va = xetile.load_tile %x : !xetile.tile<32x32xf16> -> vector<32x32xf16>
    %vb = xetile.load_tile %y : !xetile.tile<32x32xf16> -> vector<32x32xf16>
    xetile.prefetch_tile %x : !xetile.tile<32x32xf16>
    %d = xetile.tile_mma %va, %vb, %acc : vector<32x32xf16>, vector<32x32xf16>, vector<32x32xf32> -> vector<32x32xf32>
    %x1 = xetile.update_tile_offset %x, [0, 32] : !xetile.tile<32x32xf16>
    %y1 = xetile.update_tile_offset %y, [32, 0] : !xetile.tile<32x32xf16>
    scf.yield %x1, %y1, %d : !xetile.tile<32x32xf16>, !xetile.tile<32x32xf16>, vector<32x32xf32>
  }
  xetile.store_tile %r#2, %tc : vector<32x32xf32>, !xetile.tile<32x32xf32>
  return
}

// The right side is stored transposed: its block is turned, not packed.
// CHECK-LABEL: @transposed
// CHECK:       load_tile {{.*}} -> vector<4x2x16x16xf16>
// CHECK-NEXT:  tile_transpose {{.*}}, [1, 0, 3, 2] : vector<4x2x16x16xf16> -> vector<2x4x16x16xf16>
// CHECK-NEXT:  tile_mma
func.func @transposed(%a: vector<8x32xf16>, %b: memref<64x32xf16>, %c: memref<8x64xf32>) {
  %tb = xetile.init_tile %b[0, 0] : memref<64x32xf16> -> !xetile.tile<64x32xf16>
  %vb = xetile.load_tile %tb : !xetile.tile<64x32xf16> -> vector<64x32xf16>
  %t = xetile.tile_transpose %vb, [1, 0] : vector<64x32xf16> -> vector<32x64xf16>
  %d = xetile.tile_mma %a, %t : vector<8x32xf16>, vector<32x64xf16> -> vector<8x64xf32>
  %tc = xetile.init_tile %c[0, 0] : memref<8x64xf32> -> !xetile.tile<8x64xf32>
  xetile.store_tile %d, %tc : vector<8x64xf32>, !xetile.tile<8x64xf32>
  return
}

// Nobody else asks: what is only loaded comes in the largest blocks; a store takes 8
// rows at most, and with a cast between, both sides take what both can.
// CHECK-LABEL: @memory
// CHECK:       init_tile %a{{.*}}inner_blocks = [32, 16]
// CHECK:       init_tile %b{{.*}}inner_blocks = [8, 16]
// CHECK:       init_tile %c{{.*}}inner_blocks = [8, 16]
// CHECK:       init_tile %d{{.*}}inner_blocks = [32, 32]
// CHECK:       arith.truncf {{.*}} : vector<8x4x8x16xf32> to vector<8x4x8x16xf16>
// CHECK-NOT:   tile_pack
func.func @memory(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf16>, %d: memref<64x64xf16>) -> vector<64x1xf32> {
  %ta = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
  %tb = xetile.init_tile %b[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32>
  %tc = xetile.init_tile %c[0, 0] : memref<64x64xf16> -> !xetile.tile<64x64xf16>
  %td = xetile.init_tile %d[0, 0] : memref<64x64xf16> -> !xetile.tile<64x64xf16>
  xetile.prefetch_tile %td : !xetile.tile<64x64xf16>
  %va = xetile.load_tile %ta : !xetile.tile<64x64xf32> -> vector<64x64xf32>
  %s = xetile.tile_reduce <add>, %va [1] : vector<64x64xf32> -> vector<64x1xf32>
  %vb = xetile.load_tile %tb : !xetile.tile<64x64xf32> -> vector<64x64xf32>
  %h = arith.truncf %vb : vector<64x64xf32> to vector<64x64xf16>
  xetile.store_tile %h, %tc : vector<64x64xf16>, !xetile.tile<64x64xf16>
  return %s : vector<64x1xf32>
}

// One tile, read for a left and for a right side: two descriptions of it.
// CHECK-LABEL: @two_tiles_of_one
// CHECK:       init_tile %m{{.*}}inner_blocks = [8, 16]
// CHECK:       init_tile %m{{.*}}inner_blocks = [16, 16]
// CHECK-NOT:   tile_pack
func.func @two_tiles_of_one(%m: memref<32x32xf16>, %c: memref<32x32xf32>) {
  %t = xetile.init_tile %m[0, 0] : memref<32x32xf16> -> !xetile.tile<32x32xf16>
  %x = xetile.load_tile %t : !xetile.tile<32x32xf16> -> vector<32x32xf16>
  %y = xetile.load_tile %t : !xetile.tile<32x32xf16> -> vector<32x32xf16>
  %d = xetile.tile_mma %x, %y : vector<32x32xf16>, vector<32x32xf16> -> vector<32x32xf32>
  %tc = xetile.init_tile %c[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32>
  xetile.store_tile %d, %tc : vector<32x32xf32>, !xetile.tile<32x32xf32>
  return
}

// One value on both sides: it is packed for one of them.
// CHECK-LABEL: @two_sizes
// CHECK:       load_tile {{.*}} -> vector<2x2x16x16xf16>
// CHECK-NEXT:  tile_unpack
// CHECK-NEXT:  tile_pack {{.*}} {inner_blocks = array<i64: 8, 16>}
// CHECK-NEXT:  tile_mma
func.func @two_sizes(%m: memref<32x32xf16>, %c: memref<32x32xf32>) {
  %t = xetile.init_tile %m[0, 0] : memref<32x32xf16> -> !xetile.tile<32x32xf16>
  %x = xetile.load_tile %t : !xetile.tile<32x32xf16> -> vector<32x32xf16>
  %d = xetile.tile_mma %x, %x : vector<32x32xf16>, vector<32x32xf16> -> vector<32x32xf32>
  %tc = xetile.init_tile %c[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32>
  xetile.store_tile %d, %tc : vector<32x32xf32>, !xetile.tile<32x32xf32>
  return
}

// Zeros that two products start from are not cut alike.
// CHECK-LABEL: @zeros
// CHECK-DAG:   arith.constant dense<0> : vector<4x2x8x16xi32>
// CHECK-DAG:   arith.constant dense<0> : vector<4x1x8x32xi32>
func.func @zeros(%a: memref<32x32xi8>, %b: memref<32x32xi8>, %c: memref<32x32xi32>) {
  %zero = arith.constant dense<0> : vector<32x32xi32>
  %ta = xetile.init_tile %a[0, 0] : memref<32x32xi8> -> !xetile.tile<32x32xi8>
  %tb = xetile.init_tile %b[0, 0] : memref<32x32xi8> -> !xetile.tile<32x32xi8>
  %tc = xetile.init_tile %c[0, 0] : memref<32x32xi32> -> !xetile.tile<32x32xi32>
  %x = xetile.load_tile %ta : !xetile.tile<32x32xi8> -> vector<32x32xi8>
  %wide = arith.extsi %x : vector<32x32xi8> to vector<32x32xi32>
  %is = arith.cmpi sgt, %wide, %zero : vector<32x32xi32>
  %p = arith.extui %is : vector<32x32xi1> to vector<32x32xi8>
  %y = xetile.load_tile %tb : !xetile.tile<32x32xi8> -> vector<32x32xi8>
  %d = xetile.tile_mma %p, %y, %zero : vector<32x32xi8>, vector<32x32xi8>, vector<32x32xi32> -> vector<32x32xi32>
  xetile.store_tile %d, %tc : vector<32x32xi32>, !xetile.tile<32x32xi32>
  return
}

// What knows no blocks keeps its form; the value is unpacked for it.
// CHECK-LABEL: @plain_users
// CHECK:       load_tile {{.*}} -> vector<1x2x32x16xf32>
// CHECK-NEXT:  tile_unpack
// CHECK-NEXT:  tile_scan <add>, {{.*}} : vector<32x32xf32>
func.func @plain_users(%a: memref<32x32xf32>) -> vector<32x32xf32> {
  %t = xetile.init_tile %a[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32>
  %v = xetile.load_tile %t : !xetile.tile<32x32xf32> -> vector<32x32xf32>
  %s = xetile.tile_scan <add>, %v [0] : vector<32x32xf32> -> vector<32x32xf32>
  return %s : vector<32x32xf32>
}

// Blocks of a tile that the user wrote are kept, those of values are chosen anew.
// CHECK-LABEL: @given
// CHECK:       init_tile {{.*}}inner_blocks = [4, 16]
// CHECK:       load_tile {{.*}} -> vector<8x2x4x16xf16>
// CHECK-NEXT:  arith.addf {{.*}} : vector<8x2x4x16xf16>
// CHECK-NEXT:  store_tile
func.func @given(%a: memref<32x32xf16>) {
  %t = xetile.init_tile %a[0, 0] : memref<32x32xf16> -> !xetile.tile<32x32xf16, #xetile.tile_attr<inner_blocks = [4, 16]>>
  %v = xetile.load_tile %t : !xetile.tile<32x32xf16, #xetile.tile_attr<inner_blocks = [4, 16]>> -> vector<8x2x4x16xf16>
  %u = xetile.tile_unpack %v {inner_blocks = array<i64: 4, 16>} : vector<8x2x4x16xf16> -> vector<32x32xf16>
  %p = xetile.tile_pack %u {inner_blocks = array<i64: 32, 1>} : vector<32x32xf16> -> vector<1x32x32x1xf16>
  %w = arith.addf %p, %p : vector<1x32x32x1xf16>
  %x = xetile.tile_unpack %w {inner_blocks = array<i64: 32, 1>} : vector<1x32x32x1xf16> -> vector<32x32xf16>
  %y = xetile.tile_pack %x {inner_blocks = array<i64: 4, 16>} : vector<32x32xf16> -> vector<8x2x4x16xf16>
  xetile.store_tile %y, %t : vector<8x2x4x16xf16>, !xetile.tile<32x32xf16, #xetile.tile_attr<inner_blocks = [4, 16]>>
  return
}

// Shared memory takes rows of whole words, so narrower blocks than global memory.
// CHECK-LABEL: @shared
// CHECK:       inner_blocks = [32, 8]
func.func @shared() -> vector<32x8xf16> {
  %m = memref.alloc() : memref<32x8xf16, 3>
  %t = xetile.init_tile %m[0, 0] : memref<32x8xf16, 3> -> !xetile.tile<32x8xf16, #xetile.tile_attr<memory_space = 3>>
  %v = xetile.load_tile %t : !xetile.tile<32x8xf16, #xetile.tile_attr<memory_space = 3>> -> vector<32x8xf16>
  return %v : vector<32x8xf16>
}

// No message moves a column, and K = 12 fills no product: these stay whole, with the
// reason; a scattered tile never had blocks.
// CHECK-LABEL: @left_alone
// CHECK:       load_tile {{.*}} {xetile.unblocked = "no block that pvc can move divides 32x1 of f32"} {{.*}} -> vector<32x1xf32>
// CHECK:       tile_mma {{.*}} {xetile.unblocked = "K = 12 of this product is no multiple of 16"} {{.*}} -> vector<32x16xf32>
// CHECK:       load_gather {{.*}} -> vector<1x32xf32>
func.func @left_alone(%a: memref<32x1xf32>, %x: vector<32x12xf16>, %y: vector<12x16xf16>, %m: memref<1024xf32>, %i: vector<1x32xindex>, %mask: vector<1x32xi1>) -> (vector<32x1xf32>, vector<32x16xf32>, vector<1x32xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<32x1xf32> -> !xetile.tile<32x1xf32>
  %v = xetile.load_tile %t : !xetile.tile<32x1xf32> -> vector<32x1xf32>
  %d = xetile.tile_mma %x, %y : vector<32x12xf16>, vector<12x16xf16> -> vector<32x16xf32>
  %s = xetile.init_tile %m, %i : memref<1024xf32>, vector<1x32xindex> -> !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>
  %g = xetile.load_gather %s, %mask : !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>, vector<1x32xi1> -> vector<1x32xf32>
  return %v, %d, %g : vector<32x1xf32>, vector<32x16xf32>, vector<1x32xf32>
}

// A part that is whole blocks is a part of blocks; two rows are not.
// CHECK-LABEL: @parts
// CHECK:       load_tile {{.*}} -> vector<4x4x8x16xf32>
// CHECK-NEXT:  vector.extract_strided_slice {{.*}} {offsets = [2 : i64, 1 : i64], sizes = [2 : i64, 2 : i64], {{.*}} : vector<4x4x8x16xf32> to vector<2x2x8x16xf32>
// CHECK-NEXT:  vector.insert_strided_slice {{.*}} {offsets = [0 : i64, 0 : i64, 0 : i64, 0 : i64], {{.*}} : vector<2x2x8x16xf32> into vector<4x4x8x16xf32>
// CHECK:       tile_unpack
// CHECK:       vector.extract_strided_slice {{.*}} : vector<32x64xf32> to vector<2x64xf32>
// CHECK:       tile_pack {{.*}} {inner_blocks = array<i64: 2, 16>}
func.func @parts(%m: memref<32x64xf32>, %n: memref<2x64xf32>) {
  %t = xetile.init_tile %m[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
  %v = xetile.load_tile %t : !xetile.tile<32x64xf32> -> vector<32x64xf32>
  %p = vector.extract_strided_slice %v {offsets = [16, 16], sizes = [16, 32], strides = [1, 1]} : vector<32x64xf32> to vector<16x32xf32>
  %w = vector.insert_strided_slice %p, %v {offsets = [0, 0], strides = [1, 1]} : vector<16x32xf32> into vector<32x64xf32>
  xetile.store_tile %w, %t : vector<32x64xf32>, !xetile.tile<32x64xf32>
  %r = vector.extract_strided_slice %v {offsets = [2, 0], sizes = [2, 64], strides = [1, 1]} : vector<32x64xf32> to vector<2x64xf32>
  %u = xetile.init_tile %n[0, 0] : memref<2x64xf32> -> !xetile.tile<2x64xf32>
  xetile.store_tile %r, %u : vector<2x64xf32>, !xetile.tile<2x64xf32>
  return
}

// What looks at the dimensions of blocks keeps its own; the rest is chosen.
// CHECK-LABEL: @looked_at
// CHECK:       load_tile {{.*}} -> vector<1x2x16x16xf32>
// CHECK:       tile_pack {{.*}} {inner_blocks = array<i64: 4, 4>}
// CHECK-NEXT:  arith.addf {{.*}} : vector<4x8x4x4xf32>
// CHECK:       vector.multi_reduction <add>, {{.*}} [3] : vector<4x8x4x4xf32>
func.func @looked_at(%m: memref<16x32xf32>, %z: vector<4x8x4xf32>) -> vector<4x8x4xf32> {
  %t = xetile.init_tile %m[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
  %v = xetile.load_tile %t : !xetile.tile<16x32xf32> -> vector<16x32xf32>
  %p = xetile.tile_pack %v {inner_blocks = array<i64: 4, 4>} : vector<16x32xf32> -> vector<4x8x4x4xf32>
  %q = arith.addf %p, %p : vector<4x8x4x4xf32>
  %r = vector.multi_reduction <add>, %q, %z [3] : vector<4x8x4x4xf32> to vector<4x8x4xf32>
  return %r : vector<4x8x4xf32>
}
