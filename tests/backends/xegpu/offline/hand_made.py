"""A kernel of LLVM that uses each kind of block message once, written by hand."""

from xetl_xegpu.offline.ocloc import find_ocloc

REASON = "Intel's ocloc is not installed: python -m xetl_xegpu.offline.setup"
HAS_OCLOC = find_ocloc() is not None

_READ = "_Z41intel_sub_group_2d_block_read_16b_8r16x1cPU3AS1viiiDv2_iPt"
_READ_B = "_Z52intel_sub_group_2d_block_read_transform_16b_16r16x1cPU3AS1viiiDv2_iPj"
_WRITE = "_Z42intel_sub_group_2d_block_write_32b_8r16x1cPU3AS1viiiDv2_iPj"
_PREFETCH = "_Z45intel_sub_group_2d_block_prefetch_16b_8r16x1cPU3AS1viiiDv2_i"
_PRODUCT = "_Z40intel_sub_group_bf16_bf16_matrix_mad_k16Dv8_sDv8_iDv8_f"

_SURFACE = "ptr addrspace(1), i32, i32, i32, <2 x i32>"

KERNEL = f"""
declare spir_func void @{_READ}({_SURFACE}, ptr)
declare spir_func void @{_READ_B}({_SURFACE}, ptr)
declare spir_func void @{_WRITE}({_SURFACE}, ptr)
declare spir_func void @{_PREFETCH}({_SURFACE})
declare spir_func <8 x float> @{_PRODUCT}(<8 x i16>, <8 x i32>, <8 x float>)

define spir_kernel void @product(i64 %A, i64 %B, i64 %C)
    !intel_reqd_sub_group_size !0 !reqd_work_group_size !1 {{
entry:
  %a = alloca [8 x i16], align 64
  %b = alloca [8 x i32], align 64
  %c = alloca [8 x float], align 64
  %pa = inttoptr i64 %A to ptr addrspace(1)
  %pb = inttoptr i64 %B to ptr addrspace(1)
  %pc = inttoptr i64 %C to ptr addrspace(1)
  call spir_func void @{_PREFETCH}(
      ptr addrspace(1) %pa, i32 64, i32 8, i32 64, <2 x i32> zeroinitializer)
  call spir_func void @{_READ}(
      ptr addrspace(1) %pa, i32 64, i32 8, i32 64, <2 x i32> zeroinitializer, ptr %a)
  call spir_func void @{_READ_B}(
      ptr addrspace(1) %pb, i32 64, i32 16, i32 64, <2 x i32> zeroinitializer, ptr %b)
  %av = load <8 x i16>, ptr %a, align 64
  %bv = load <8 x i32>, ptr %b, align 64
  %r = call spir_func <8 x float> @{_PRODUCT}(
      <8 x i16> %av, <8 x i32> %bv, <8 x float> zeroinitializer)
  store <8 x float> %r, ptr %c, align 64
  call spir_func void @{_WRITE}(
      ptr addrspace(1) %pc, i32 64, i32 8, i32 64, <2 x i32> zeroinitializer, ptr %c)
  ret void
}}
!0 = !{{i32 16}}
!1 = !{{i32 16, i32 1, i32 1}}
"""

MISSPELT = KERNEL.replace("bf16_bf16", "bf16_bf61")
