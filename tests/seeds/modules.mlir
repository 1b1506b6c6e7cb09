// RUN: xetl-opt %s | filecheck %s
// Small modules of the kind that the last released dialect had, one function each.

gpu.module @modules {
  // Gather and scatter, masked.
  // CHECK: gpu.func @gather
  gpu.func @gather(%a: memref<1024xf32>, %b: memref<1024xf32>) kernel {
    %id = gpu.block_id x
    %c32 = arith.constant 32 : index
    %c3 = arith.constant dense<3> : vector<1x32xindex>
    %start = arith.muli %id, %c32 : index
    %n = vector.step : vector<32xindex>
    %s = vector.broadcast %start : index to vector<32xindex>
    %i = arith.addi %n, %s : vector<32xindex>
    %idx = vector.shape_cast %i : vector<32xindex> to vector<1x32xindex>
    %three = arith.muli %idx, %c3 : vector<1x32xindex>
    %c20 = arith.constant 20 : index
    %c1 = arith.constant 1 : index
    %mask = vector.create_mask %c1, %c20 : vector<1x32xi1>
    %t = xetile.init_tile %a, %three : memref<1024xf32>, vector<1x32xindex> -> !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>
    %u = xetile.init_tile %b, %idx : memref<1024xf32>, vector<1x32xindex> -> !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>
    %g = xetile.load %t, %mask {padding = 7.0 : f32} : !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>, vector<1x32xi1> -> vector<1x32xf32>
    %all = arith.constant dense<true> : vector<1x32xi1>
    xetile.store %g, %u, %all : vector<1x32xf32>, !xetile.tile<1x32xf32, #xetile.tile_attr<scattered = true>>, vector<1x32xi1>
    gpu.return
  }

  // A transpose through shared memory; each subgroup writes 16 rows and reads 16 columns.
  // CHECK: gpu.func @slm_transpose
  gpu.func @slm_transpose(%a: memref<64x64xf32>, %b: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 2, 2, 1>} {
    %x = gpu.thread_id x
    %y = gpu.thread_id y
    %dx = gpu.block_dim x
    %row = arith.muli %y, %dx : index
    %id = arith.addi %row, %x : index
    %c16 = arith.constant 16 : index
    %at = index.mul %id, %c16
    %c0 = arith.constant 0 : index
    %bytes = memref.alloc() : memref<16384xi8, 3>
    %slm = memref.view %bytes[%c0][] : memref<16384xi8, 3> to memref<64x64xf32, 3>
    %ta = xetile.init_tile %a[%at, 0] : memref<64x64xf32> -> !xetile.tile<16x64xf32>
    %ts = xetile.init_tile %slm[%at, 0] : memref<64x64xf32, 3> -> !xetile.tile<16x64xf32, #xetile.tile_attr<memory_space = 3>>
    %v = xetile.load_tile %ta : !xetile.tile<16x64xf32> -> vector<16x64xf32>
    xetile.store_tile %v, %ts : vector<16x64xf32>, !xetile.tile<16x64xf32, #xetile.tile_attr<memory_space = 3>>
    gpu.barrier
    %tr = xetile.init_tile %slm[0, %at] : memref<64x64xf32, 3> -> !xetile.tile<64x16xf32, #xetile.tile_attr<memory_space = 3 : i32>>
    %w = xetile.load_tile %tr : !xetile.tile<64x16xf32, #xetile.tile_attr<memory_space = 3 : i64>> -> vector<64x16xf32>
    %wt = vector.transpose %w, [1, 0] : vector<64x16xf32> to vector<16x64xf32>
    %tb = xetile.init_tile %b[%at, 0] : memref<64x64xf32> -> !xetile.tile<16x64xf32>
    xetile.store_tile %wt, %tb : vector<16x64xf32>, !xetile.tile<16x64xf32>
    gpu.return
  }

  // Sums of rows and the largest of each column.
  // CHECK: gpu.func @reduce
  gpu.func @reduce(%a: memref<32x64xf32>, %s: memref<32x1xf32>, %m: memref<1x64xf32>) kernel {
    %t = xetile.init_tile %a[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    %v = xetile.load_tile %t : !xetile.tile<32x64xf32> -> vector<32x64xf32>
    %acc = arith.constant dense<1.0> : vector<32xf32>
    %r = vector.multi_reduction <add>, %v, %acc [1] : vector<32x64xf32> to vector<32xf32>
    %rs = vector.shape_cast %r : vector<32xf32> to vector<32x1xf32>
    %q = xetile.reduction <maximumf>, %v [0] : vector<32x64xf32> -> vector<1x64xf32>
    %ts = xetile.init_tile %s[0, 0] : memref<32x1xf32> -> !xetile.tile<32x1xf32>
    %tm = xetile.init_tile %m[0, 0] : memref<1x64xf32> -> !xetile.tile<1x64xf32>
    xetile.store_tile %rs, %ts : vector<32x1xf32>, !xetile.tile<32x1xf32>
    xetile.store_tile %q, %tm : vector<1x64xf32>, !xetile.tile<1x64xf32>
    gpu.return
  }

  // A branch on the number of the block, blocks in a chain, arguments that are numbers.
  // CHECK: gpu.func @branch
  gpu.func @branch(%a: memref<64x32xf32>, %limit: i32, %x: f32) kernel {
    %id = gpu.block_id x
    %i = arith.index_cast %id : index to i32
    %less = arith.cmpi slt, %i, %limit : i32
    %c32 = arith.constant 32 : index
    cf.br ^next(%id : index)
  ^next(%n: index):
    %at = arith.muli %n, %c32 : index
    %t = xetile.init_tile %a[%at, 0] : memref<64x32xf32> -> !xetile.tile<32x32xf32>
    %v = xetile.load_tile %t : !xetile.tile<32x32xf32> -> vector<32x32xf32>
    %b = vector.broadcast %x : f32 to vector<32x32xf32>
    %r = scf.if %less -> (vector<32x32xf32>) {
      %s = arith.addf %v, %b : vector<32x32xf32>
      scf.yield %s : vector<32x32xf32>
    } else {
      %s = arith.mulf %v, %b : vector<32x32xf32>
      scf.yield %s : vector<32x32xf32>
    }
    xetile.store_tile %r, %t : vector<32x32xf32>, !xetile.tile<32x32xf32>
    gpu.return
  }

  // Padding outside of the matrix, on all sides.
  // CHECK: gpu.func @padding
  gpu.func @padding(%a: memref<20x20xf16>, %b: memref<32x32xf16>) kernel {
    %t = xetile.init_tile %a[-4, -4] : memref<20x20xf16> -> !xetile.tile<32x32xf16>
    %v = xetile.load_tile %t {padding = 0.5 : f32} : !xetile.tile<32x32xf16> -> vector<32x32xf16>
    %u = xetile.init_tile %b[0, 0] : memref<32x32xf16> -> !xetile.tile<32x32xf16>
    xetile.store_tile %v, %u : vector<32x32xf16>, !xetile.tile<32x32xf16>
    gpu.return
  }

  // A column-major matrix.
  // CHECK: gpu.func @order
  gpu.func @order(%a: memref<64x32xf16, strided<[1, 64]>>, %b: memref<64x32xf16>) kernel {
    %t = xetile.init_tile %a[0, 0] : memref<64x32xf16, strided<[1, 64]>> -> !xetile.tile<64x32xf16, #xetile.tile_attr<order = [0, 1]>>
    %v = xetile.load_tile %t : !xetile.tile<64x32xf16, #xetile.tile_attr<order = [0, 1]>> -> vector<64x32xf16>
    %u = xetile.init_tile %b[0, 0] : memref<64x32xf16> -> !xetile.tile<64x32xf16>
    xetile.store_tile %v, %u : vector<64x32xf16>, !xetile.tile<64x32xf16>
    gpu.return
  }

  // All blocks add to the same tile.
  // CHECK: gpu.func @atomic
  gpu.func @atomic(%a: memref<16x16xf32>) kernel {
    %one = arith.constant dense<1.0> : vector<16x16xf32>
    %t = xetile.init_tile %a[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    %old = xetile.atomic_rmw addf %one, %t : vector<16x16xf32>, !xetile.tile<16x16xf32> -> vector<16x16xf32>
    gpu.return
  }

  // Two vectors of one load.
  // CHECK: gpu.func @array_length
  gpu.func @array_length(%a: memref<32x32xf16>, %b: memref<32x16xf16>) kernel {
    %t = xetile.init_tile %a[0, 0] : memref<32x32xf16> -> !xetile.tile<32x16xf16, #xetile.tile_attr<array_length = 2 : i64>>
    %v:2 = xetile.load_tile %t : !xetile.tile<32x16xf16, #xetile.tile_attr<array_length = 2 : i64>> -> vector<32x16xf16>, vector<32x16xf16>
    %d = arith.subf %v#1, %v#0 : vector<32x16xf16>
    %u = xetile.init_tile %b[0, 0] : memref<32x16xf16> -> !xetile.tile<32x16xf16>
    xetile.store_tile %d, %u : vector<32x16xf16>, !xetile.tile<32x16xf16>
    gpu.return
  }

  // One matrix of several, views of an array, a part of a vector.
  // CHECK: gpu.func @views
  gpu.func @views(%a: memref<3x32x32xf32>, %b: memref<32x32xf32>, %i: index) kernel {
    %t = xetile.init_tile %a[%i, 0, 0] : memref<3x32x32xf32> -> !xetile.tile<32x32xf32>
    %v = xetile.load_tile %t : !xetile.tile<32x32xf32> -> vector<32x32xf32>
    %part = vector.extract_strided_slice %v {offsets = [8, 4], sizes = [16, 16], strides = [1, 1]} : vector<32x32xf32> to vector<16x16xf32>
    %w = memref.subview %b[16, 0] [16, 32] [1, 1] : memref<32x32xf32> to memref<16x32xf32, strided<[32, 1], offset: 512>>
    %u = xetile.init_tile %w[0, 16] : memref<16x32xf32, strided<[32, 1], offset: 512>> -> !xetile.tile<16x16xf32>
    xetile.store_tile %part, %u : vector<16x16xf32>, !xetile.tile<16x16xf32>
    gpu.return
  }

  // Blocked values, a raw address, a constant of different numbers.
  // CHECK: gpu.func @address
  gpu.func @address(%p: i64, %b: memref<16x4xf32>) kernel {
    %c16 = arith.constant 16 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %t = xetile.init_tile %p[0, 0], [%c16, %c4], [%c4, %c1] : i64 -> !xetile.tile<16x4xf32>
    %v = xetile.load_tile %t : !xetile.tile<16x4xf32> -> vector<16x4xf32>
    %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
    %kk = vector.broadcast %k : vector<4xf32> to vector<16x4xf32>
    %r = arith.mulf %v, %kk : vector<16x4xf32>
    %u = xetile.init_tile %b[0, 0] : memref<16x4xf32> -> !xetile.tile<16x4xf32>
    xetile.store_tile %r, %u : vector<16x4xf32>, !xetile.tile<16x4xf32>
    gpu.return
  }

  // Subgroups hand their rows round: barriers in a loop, memory asked for in it.
  // CHECK: gpu.func @ring
  gpu.func @ring(%a: memref<8x16xf32>) kernel attributes {gpu.known_block_size = array<i32: 8, 1, 1>} {
    %s = gpu.subgroup_id : index
    %n = gpu.num_subgroups : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %ta = xetile.init_tile %a[%s, 0] : memref<8x16xf32> -> !xetile.tile<1x16xf32>
    %v0 = xetile.load_tile %ta : !xetile.tile<1x16xf32> -> vector<1x16xf32>
    %up = index.add %s, %c1
    %nx = index.remu %up, %n
    %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%v = %v0) -> (vector<1x16xf32>) {
      %slm = memref.alloca() : memref<8x16xf32, 3>
      %ts = xetile.init_tile %slm[%s, 0] : memref<8x16xf32, 3> -> !xetile.tile<1x16xf32, #xetile.tile_attr<memory_space = 3>>
      xetile.store_tile %v, %ts : vector<1x16xf32>, !xetile.tile<1x16xf32, #xetile.tile_attr<memory_space = 3>>
      gpu.barrier
      %tn = xetile.init_tile %slm[%nx, 0] : memref<8x16xf32, 3> -> !xetile.tile<1x16xf32, #xetile.tile_attr<memory_space = 3>>
      %w = xetile.load_tile %tn : !xetile.tile<1x16xf32, #xetile.tile_attr<memory_space = 3>> -> vector<1x16xf32>
      gpu.barrier
      %y = arith.addf %w, %v : vector<1x16xf32>
      scf.yield %y : vector<1x16xf32>
    }
    xetile.store_tile %r, %ta : vector<1x16xf32>, !xetile.tile<1x16xf32>
    gpu.return
  }

  // A blocked value is transposed: in blocks of the other shape, and then (sums of the
  // columns of blocks are no sums of the value) with its blocks made.
  // CHECK: gpu.func @blocked_transpose
  gpu.func @blocked_transpose(%a: memref<32x64xf32>, %b: memref<64x32xf32>, %s: memref<16x8xf32>) kernel {
    %t = xetile.init_tile %a[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32, #xetile.tile_attr<inner_blocks = [8, 16]>>
    %v = xetile.load_tile %t : !xetile.tile<32x64xf32, #xetile.tile_attr<inner_blocks = [8, 16]>> -> vector<4x4x8x16xf32>
    %w = xetile.tile_transpose %v, [1, 0, 3, 2] : vector<4x4x8x16xf32> -> vector<4x4x16x8xf32>
    %u = xetile.init_tile %b[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #xetile.tile_attr<inner_blocks = [16, 8]>>
    xetile.store_tile %w, %u : vector<4x4x16x8xf32>, !xetile.tile<64x32xf32, #xetile.tile_attr<inner_blocks = [16, 8]>>
    %r = xetile.tile_reduce <add>, %w [0, 1] : vector<4x4x16x8xf32> -> vector<1x1x16x8xf32>
    %f = xetile.tile_unpack %r {inner_blocks = array<i64: 16, 8>} : vector<1x1x16x8xf32> -> vector<16x8xf32>
    %x = xetile.init_tile %s[0, 0] : memref<16x8xf32> -> !xetile.tile<16x8xf32>
    xetile.store_tile %f, %x : vector<16x8xf32>, !xetile.tile<16x8xf32>
    gpu.return
  }

  // The same transpose alone: blocks are forgotten.
  // CHECK: gpu.func @blocks_forgotten
  gpu.func @blocks_forgotten(%a: memref<32x64xf32>, %b: memref<64x32xf32>) kernel {
    %t = xetile.init_tile %a[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32, #xetile.tile_attr<inner_blocks = [8, 16]>>
    %v = xetile.load_tile %t : !xetile.tile<32x64xf32, #xetile.tile_attr<inner_blocks = [8, 16]>> -> vector<4x4x8x16xf32>
    %w = xetile.tile_transpose %v, [1, 0, 3, 2] : vector<4x4x8x16xf32> -> vector<4x4x16x8xf32>
    %u = xetile.init_tile %b[0, 0] : memref<64x32xf32> -> !xetile.tile<64x32xf32, #xetile.tile_attr<inner_blocks = [16, 8]>>
    xetile.store_tile %w, %u : vector<4x4x16x8xf32>, !xetile.tile<64x32xf32, #xetile.tile_attr<inner_blocks = [16, 8]>>
    gpu.return
  }

  // Cannot be launched, but is checked and printed.
  // CHECK: func.func @snippet
  func.func @snippet(%t: !xetile.tile<32x32xf16>, %v: vector<8x16xf16>) -> vector<16x8xf16> {
    %u = xetile.update_tile_offset %t, [8, 0] : !xetile.tile<32x32xf16>
    %r = xetile.transpose %v, [1, 0] : vector<8x16xf16> -> vector<16x8xf16>
    return %r : vector<16x8xf16>
  }
}
