// RUN: xetl-opt %s -p distribute-to-lanes --split-input-file --verify-diagnostics | filecheck %s

// An array is an address, then its dynamic sizes and strides; the status words come last.
// What a block message brings is what the type says a lane holds: nothing moves.
// CHECK-LABEL: simt.func @blocks
// CHECK-SAME:  (%{{[0-9a-z]+}}: i64, %{{[0-9a-z]+}}: i64, %{{[0-9a-z]+}}: i64, %{{[0-9a-z]+}}: i64, %{{[0-9a-z]+}}: i64)
// CHECK-SAME:  work_group = array<i64: 128, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 0 : i64
// CHECK:       simt.block_load {{.*}} {bits = 16 : i64, rows = 16 : i64, columns = 16 : i64, count = 2 : i64} : vector<8xi16>, vector<8xi16>, vector<8xi16>, vector<8xi16>
// CHECK:       arith.addf {{.*}} : vector<8xbf16>
// CHECK-NOT:   simt.shuffle
// CHECK:       simt.block_store
gpu.module @m {
  gpu.func @blocks(%a: memref<?x?xbf16, strided<[?, 1]>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %m, %o, %s:2, %t:2 = memref.extract_strided_metadata %a : memref<?x?xbf16, strided<[?, 1]>> -> memref<bf16>, index, index, index, index, index
    %d = xegpu.create_nd_tdesc %a, shape: [%s#0, %s#1], strides: [%t#0, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xegpu.tensor_desc<16x16xbf16, #xegpu.block_tdesc_attr<array_length = 2>>
    %e = xegpu.create_nd_tdesc %a, shape: [%s#0, %s#1], strides: [%t#0, 1] : memref<?x?xbf16, strided<[?, 1]>> -> !xegpu.tensor_desc<8x16xbf16>
    %v = xegpu.load_nd %d[%c0, %c0] : !xegpu.tensor_desc<16x16xbf16, #xegpu.block_tdesc_attr<array_length = 2>> -> vector<2x16x16xbf16>
    %w = vector.extract %v[1] : vector<16x16xbf16> from vector<2x16x16xbf16>
    %x = vector.extract_strided_slice %w {offsets = [8, 0], sizes = [8, 16], strides = [1, 1]} : vector<16x16xbf16> to vector<8x16xbf16>
    %y = arith.addf %x, %x : vector<8x16xbf16>
    xegpu.store_nd %y, %e[%c0, %c0] : vector<8x16xbf16>, !xegpu.tensor_desc<8x16xbf16>
    gpu.return
  }
}

// -----

// Rows are summed over the lanes, eight of them at once; a column is in every lane, so its
// broadcast is free. What a loop carries is pieces.
// CHECK-LABEL: simt.func @sums
// CHECK:       simt.reduce_rows "add" {{.*}} : vector<8xf32>
// CHECK-NOT:   vector.broadcast
// CHECK:       scf.for {{.*}} -> (vector<8xf32>)
// CHECK-NEXT:    arith.mulf {{.*}} : vector<8xf32>
gpu.module @m {
  gpu.func @sums(%a: memref<64x64xf32>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d[%c0, %c0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %z = arith.constant dense<0.0> : vector<8xf32>
    %s = vector.multi_reduction <add>, %v, %z [1] : vector<8x16xf32> to vector<8xf32>
    %t = vector.shape_cast %s : vector<8xf32> to vector<8x1xf32>
    %u = vector.broadcast %t : vector<8x1xf32> to vector<8x16xf32>
    %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%x = %u) -> (vector<8x16xf32>) {
      %y = arith.mulf %x, %v : vector<8x16xf32>
      scf.yield %y : vector<8x16xf32>
    }
    xegpu.store_nd %r, %d[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}

// -----

// B that was not loaded packed is paired in the lane: rows that are neighbours are so
// in a lane's vector too.
// CHECK-LABEL: simt.func @pairs
// CHECK:       vector.bitcast {{.*}} : vector<8xf16> to vector<4xi32>
// CHECK:       vector.bitcast {{.*}} : vector<8xf16> to vector<4xi32>
// CHECK:       vector.shuffle {{.*}}[0, 1, 2, 3, 4, 5, 6, 7] : vector<4xi32>, vector<4xi32>
// CHECK-NOT:   simt.shuffle
// CHECK:       simt.dpas {{.*}} {a_type = "f16", b_type = "f16"}
gpu.module @m {
  gpu.func @pairs(%a: memref<64x64xf16>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    %e = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %b = xegpu.load_nd %d[%c0, %c0] : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>
    %v = xegpu.load_nd %e[%c0, %c0] : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    %w = arith.mulf %b, %b : vector<16x16xf16>
    %r = xegpu.dpas %v, %w : vector<8x16xf16>, vector<16x16xf16> -> vector<8x16xf16>
    xegpu.store_nd %r, %e[%c0, %c0] : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>
    gpu.return
  }
}

// -----

// A named barrier that all subgroups meet is a barrier of the workgroup, in two halves.
// CHECK-LABEL: simt.func @met_by_all
// CHECK:       simt.barrier_arrive
// CHECK-NEXT:  simt.barrier_wait
gpu.module @m {
  gpu.func @met_by_all() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 4 : i8
    xegpu.alloc_nbarrier 2
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    gpu.return
  }
}

// -----

// One of some subgroups is one of the device: they meet where they wait.
// CHECK-LABEL: simt.func @met_by_some
// CHECK-NOT:   simt.barrier
// CHECK:       simt.named_barrier 1 of 2
// CHECK-NEXT:  simt.return
gpu.module @m {
  gpu.func @met_by_some() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 2 : i8
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    gpu.return
  }
}

// -----

// Where some never wait all meet where they arrive.
// CHECK-LABEL: simt.func @produces
// CHECK:       simt.named_barrier 1 of 4
// CHECK-NOT:   barrier
// CHECK:       simt.return
gpu.module @m {
  gpu.func @produces(%is: i1) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 4 : i8
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    scf.if %is {
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
    }
    gpu.return
  }
}

// -----

// CHECK: who waits at this named barrier may not have arrived there
gpu.module @m {
  gpu.func @waits(%is: i1) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 4 : i8
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    scf.if %is {
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    } else {
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
    }
    gpu.return
  }
}

// -----

// CHECK: 5 subgroups meet at this named barrier, of 4
gpu.module @m {
  gpu.func @too_many() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %n = arith.constant 5 : i8
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    gpu.return
  }
}

// -----

// CHECK: which subgroups meet at this named barrier is not known
gpu.module @m {
  gpu.func @unknown(%n: i8) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %b = xegpu.init_nbarrier %id, %n : i8, i8 -> !xegpu.nbarrier
    gpu.return
  }
}

// -----

// CHECK: named barrier 1 is for another number of subgroups before
gpu.module @m {
  gpu.func @two_counts() kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %id = arith.constant 1 : i8
    %two = arith.constant 2 : i8
    %three = arith.constant 3 : i8
    %a = xegpu.init_nbarrier %id, %two : i8, i8 -> !xegpu.nbarrier
    %b = xegpu.init_nbarrier %id, %three : i8, i8 -> !xegpu.nbarrier
    gpu.return
  }
}

// -----

// A fence says which memory, and who sees it.
// CHECK-LABEL: simt.func @fences
// CHECK-NEXT:  simt.fence "workgroup" {memory = "local"}
// CHECK-NEXT:  simt.fence "device" {memory = "local"}
// CHECK-NEXT:  simt.fence "workgroup" {memory = "global"}
// CHECK-NEXT:  simt.fence "device" {memory = "global"}
gpu.module @m {
  gpu.func @fences() kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    xegpu.fence memory_kind = slm, fence_scope = workgroup
    xegpu.fence memory_kind = slm, fence_scope = gpu
    xegpu.fence memory_kind = global, fence_scope = workgroup
    xegpu.fence memory_kind = global, fence_scope = gpu
    gpu.return
  }
}

// -----

// Hints stay if the device has such a message; what one cache is not told is completed.
// A store that is cached is written back. Of L2 no message speaks.
// CHECK-LABEL: simt.func @hints
// CHECK:       simt.block_prefetch {{.*}}l1_hint = "streaming", l3_hint = "uncached"}
// CHECK:       simt.block_load {{.*}}l1_hint = "read_invalidate", l3_hint = "cached"}
// CHECK:       simt.block_store {{.*}}l1_hint = "write_back", l3_hint = "write_back"}
// CHECK:       simt.block_store {{.*}} {bits = 32 : i64, rows = 8 : i64, columns = 16 : i64} :
// CHECK:       simt.load {{.*}} {l1_hint = "cached", l3_hint = "uncached"}
// CHECK:       simt.store {{.*}} {l1_hint = "write_through", l3_hint = "write_back"}
gpu.module @m {
  gpu.func @hints(%a: memref<64x64xf32>, %f: memref<64xf32>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %on = arith.constant dense<true> : vector<16xi1>
    %s = vector.step : vector<16xindex>
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.prefetch_nd %d[%c0, %c0] <{l1_hint = #xegpu.cache_hint<streaming>, l3_hint = #xegpu.cache_hint<uncached>}> : !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d[%c0, %c0] <{l1_hint = #xegpu.cache_hint<read_invalidate>}> : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %d[%c0, %c0] <{l1_hint = #xegpu.cache_hint<cached>, l2_hint = #xegpu.cache_hint<uncached>}> : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %v, %d[%c0, %c0] <{l1_hint = #xegpu.cache_hint<write_back>, l3_hint = #xegpu.cache_hint<uncached>}> : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    %w = xegpu.load %f[%s], %on <{l3_hint = #xegpu.cache_hint<uncached>}> : memref<64xf32>, vector<16xindex>, vector<16xi1> -> vector<16xf32>
    xegpu.store %w, %f[%s], %on <{l1_hint = #xegpu.cache_hint<write_through>}> : vector<16xf32>, memref<64xf32>, vector<16xindex>, vector<16xi1>
    gpu.return
  }
}

// -----

// Columns that are apart: no message does that, so lanes move the block by themselves,
// in whichever kernel; hints are for messages.
// CHECK-LABEL: simt.func @apart
// CHECK:       %[[STEP:.*]] = arith.muli
// CHECK:       simt.block_load {{.*}} step %{{.*}} {bits = 16 : i64, rows = 16 : i64, columns = 16 : i64, mode = "transform", by_lanes} : vector<8xi32>
// CHECK:       simt.block_store {{.*}} step %{{.*}} {bits = 16 : i64, rows = 8 : i64, columns = 16 : i64, by_lanes} : vector<8xi16>
gpu.module @m {
  gpu.func @apart(%a: memref<64x64xf16, strided<[256, 4]>>, %step: index) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %d = xegpu.create_nd_tdesc %a, shape: [64, 64], strides: [256, %step] : memref<64x64xf16, strided<[256, 4]>> -> !xegpu.tensor_desc<16x16xf16>
    %e = xegpu.create_nd_tdesc %a, shape: [64, 64], strides: [256, 4] : memref<64x64xf16, strided<[256, 4]>> -> !xegpu.tensor_desc<8x16xf16>
    %v = xegpu.load_nd %d[%c0, %c0] <{l1_hint = #xegpu.cache_hint<uncached>, packed}> : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    %w = arith.constant dense<1.0> : vector<8x16xf16>
    %z = arith.constant dense<0.0> : vector<8x16xf32>
    %p = xegpu.dpas %w, %v, %z : vector<8x16xf16>, vector<8x16x2xf16>, vector<8x16xf32> -> vector<8x16xf32>
    %n = arith.truncf %p : vector<8x16xf32> to vector<8x16xf16>
    xegpu.store_nd %n, %e[%c0, %c0] : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>
    gpu.return
  }
}

// -----

// A descriptor that a loop carries has no surface that is known before the loop.
// CHECK: a loop or a branch cannot carry
gpu.module @m {
  gpu.func @carried(%a: memref<64x64xf16>) kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %d = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %e = scf.for %i = %c0 to %c8 step %c8 iter_args(%t = %d) -> (!xegpu.tensor_desc<8x16xf16>) {
      xegpu.prefetch_nd %t[%c8, %c0] : !xegpu.tensor_desc<8x16xf16>
      scf.yield %t : !xegpu.tensor_desc<8x16xf16>
    }
    gpu.return
  }
}
