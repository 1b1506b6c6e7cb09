// Attribute dictionaries wherever MLIR allows one, names that look strange, Unicode, places, comments.
// launch: my-kernel.v1 (2) (1)
// A: 32x16 f32 integers
// expect A = A * 2 + 3
#loc = loc("made.py":0:0)
#note = "ünïcode ⊗ 核"  // an alias for a text // with slashes
!block = !xetile.tile<16x16xf32>
!v = vector<16x16xf32>
module @"outer module" attributes {a.note = #note, b.list = [1 : i8, -2 : i64, 0x1F : i32, 1.0e-3 : f16, "s", unit, true, @m::@"my-kernel.v1", [], {}, {x = 1, "y z" = 2}], c.type = vector<2x3xf32>, d.array = array<i32: 1, -2>, e.flags = array<i1: true, false>, f.dense = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>, g.map = affine_map<(d0)[s0] -> (d0 floordiv 2 + s0 * 3, d0 mod 4)>, h.set = affine_set<(d0) : (d0 - 1 >= 0, d0 == 0)>, i.foo = #foo.bar<"x", [1, <2>]>, j.type = !foo.thing<4x?xf32>, k.loc = loc("a":1:2), l.str = strided<[1, ?], offset: 3>} {
  gpu.module @m [#xevm.target<chip = "pvc">] attributes {spirv.target_env = #spirv.target_env<#spirv.vce<v1.4, [Addresses], []>, #spirv.resource_limits<subgroup_size = 16>>} {
    gpu.func @"my-kernel.v1"(%A.1: memref<32x16xf32> {llvm.noalias, llvm.align = 64 : i64} loc("arg"(#loc))) kernel attributes {VectorComputeFunctionINTEL, known_block_size = array<i32: 1, 1, 1>, intel_reqd_sub_group_size = 16 : i32, workgroup_note = "ü"} {
      %_ = arith.constant {x = 1 : i32} 16 : index loc(#loc)
      %0 = gpu.block_id x {note.x} loc(unknown)
      %$1 = arith.muli %0, %_ {note.y = "z"} : index loc(callsite("f" at "g.py":3:4))
      %t-1 = xetile.init_tile %A.1[%$1, 0] {note = 1} : memref<32x16xf32> -> !block loc(fused["a", "b.py":1:1])
      %v.x-y_z = xetile.load_tile %t-1 {some_hint = "kept"} : !block -> !v
      %p = arith.constant true
      %2:2 = scf.if %p -> (!v, index) {
        scf.yield {note} %v.x-y_z, %_ : !v, index
      } else {
        scf.yield %v.x-y_z, %0 : !v, index
      } {note.if = 3.0 : f64}
      %3 = arith.addf %2#0, %2#0 {fastmath = #arith.fastmath<none>} : !v
      %c3 = arith.constant dense<3.0> : !v
      %4 = arith.addf %3, %c3 fastmath<contract,reassoc> {note.z = array<i64>} : !v // done
      xetile.store_tile %4, %t-1 {note.w = unit} : !v, !block
      gpu.barrier {note.b}
      scf.for %i = %_ to %_ step %_ { } {note.loop = #note}
      gpu.return loc("end.py":9:9)
    } loc(#loc2)
  }
} loc(#loc)
#loc2 = loc("later.py":1:1)
{-#
  external_resources: {
    note: {
      text: "nothing"
    }
  }
#-}
