// A GEMM at subgroup level: each program of a 2-D grid makes 32x32 of C from tiles of
// A and B that move along K; host code around it as a runner would have it.
// launch: test_kernel (4, 2, 1) (1, 1, 1)
// A: 128x64 f16 integers
// B: 64x64 f16 integers
// C: 128x64 f32 integers
// expect C = C + A @ B
module @gemm attributes {gpu.container_module} {
  func.func @test(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf32>) -> memref<128x64xf32> attributes {llvm.emit_c_interface} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %A_gpu = gpu.alloc  host_shared () : memref<128x64xf16>
    memref.copy %A, %A_gpu : memref<128x64xf16> to memref<128x64xf16>
    %B_gpu = gpu.alloc  host_shared () : memref<64x64xf16>
    memref.copy %B, %B_gpu : memref<64x64xf16> to memref<64x64xf16>
    %C_gpu = gpu.alloc  host_shared () : memref<128x64xf32>
    memref.copy %C, %C_gpu : memref<128x64xf32> to memref<128x64xf32>
    gpu.launch_func  @test_kernel::@test_kernel blocks in (%c4, %c2, %c1) threads in (%c1, %c1, %c1) args(%A_gpu : memref<128x64xf16>, %B_gpu : memref<64x64xf16>, %C_gpu : memref<128x64xf32>)
    gpu.dealloc  %A_gpu : memref<128x64xf16>
    gpu.dealloc  %B_gpu : memref<64x64xf16>
    return %C_gpu : memref<128x64xf32>
  }
  gpu.module @test_kernel attributes {spirv.target_env = #spirv.target_env<#spirv.vce<v1.4, [Addresses, Float16Buffer, Int64, Int16, Int8, Kernel, Linkage, Vector16, GenericPointer, Groups, Float16, Float64, AtomicFloat32AddEXT, ExpectAssumeKHR, SubgroupDispatch, VectorComputeINTEL, VectorAnyINTEL], [SPV_EXT_shader_atomic_float_add, SPV_KHR_expect_assume, SPV_INTEL_vector_compute]>, api=OpenCL, #spirv.resource_limits<>>} {
    gpu.func @test_kernel(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf32>) kernel attributes {VectorComputeFunctionINTEL, spirv.entry_point_abi = #spirv.entry_point_abi<>} {
      %c0 = arith.constant 0 : index
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %m = arith.muli %block_id_x, %c32 : index
      %n = arith.muli %block_id_y, %c32 : index
      %c_init_tile = xetile.init_tile %C[%m, %n] : memref<128x64xf32> -> !xetile.tile<32x32xf32>
      %c_init_value = xetile.load_tile %c_init_tile : !xetile.tile<32x32xf32> -> vector<32x32xf32>
      %a_init_tile = xetile.init_tile %A[%m, %c0] : memref<128x64xf16> -> !xetile.tile<32x32xf16>
      %b_init_tile = xetile.init_tile %B[%c0, %n] : memref<64x64xf16> -> !xetile.tile<32x32xf16>
      %out:3 = scf.for %k = %c0 to %c64 step %c32
        iter_args(%a_tile = %a_init_tile, %b_tile = %b_init_tile, %c_value = %c_init_value)
        -> (!xetile.tile<32x32xf16>, !xetile.tile<32x32xf16>, vector<32x32xf32>) {
        %a_value = xetile.load_tile %a_tile : !xetile.tile<32x32xf16> -> vector<32x32xf16>
        %b_value = xetile.load_tile %b_tile : !xetile.tile<32x32xf16> -> vector<32x32xf16>
        %c_new_value = xetile.tile_mma %a_value, %b_value, %c_value
          : vector<32x32xf16>, vector<32x32xf16>, vector<32x32xf32> -> vector<32x32xf32>
        %a_next_tile = xetile.update_tile_offset %a_tile, [%c0, %c32] : !xetile.tile<32x32xf16>
        %b_next_tile = xetile.update_tile_offset %b_tile, [%c32, %c0] : !xetile.tile<32x32xf16>
        scf.yield %a_next_tile, %b_next_tile, %c_new_value : !xetile.tile<32x32xf16>, !xetile.tile<32x32xf16>, vector<32x32xf32>
      }
      xetile.store_tile %out#2, %c_init_tile : vector<32x32xf32>, !xetile.tile<32x32xf32>
      gpu.return
    }
  }
  func.func private @printAllclose(memref<*xf32>, memref<*xf32>) attributes {llvm.emit_c_interface}
  func.func @main() attributes {llvm.emit_c_interface} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %cf = arith.constant 0.0 : f32
    %A = memref.alloc() : memref<128x64xf16>
    %B = memref.alloc() {alignment = 64 : i64} : memref<64x64xf16>
    %C = memref.alloc() : memref<128x64xf32>
    scf.for %i = %c0 to %c128 step %c1 {
      scf.for %j = %c0 to %c64 step %c1 {
        %t = index.castu %i : index to i16
        %val = arith.uitofp %t : i16 to f16
        memref.store %val, %A[%i, %j] : memref<128x64xf16>
        memref.store %cf, %C[%i, %j] : memref<128x64xf32>
      }
    }
    linalg.fill ins(%cf : f32) outs(%C : memref<128x64xf32>)
    %R = call @test(%A, %B, %C) : (memref<128x64xf16>, memref<64x64xf16>, memref<128x64xf32>) -> memref<128x64xf32>
    %cast = memref.cast %R : memref<128x64xf32> to memref<*xf32>
    call @printAllclose(%cast, %cast) : (memref<*xf32>, memref<*xf32>) -> ()
    memref.dealloc %A : memref<128x64xf16>
    return
  }
}
