// RUN: xetl-opt %s | filecheck %s
// RUN: xetl-opt %s --generic | xetl-opt - | filecheck %s

// CHECK: func.func private @outside(i32) -> (i32, f32)
func.func private @outside(i32) -> (i32, f32)

// CHECK-LABEL: @blocks
// CHECK-SAME: (%c: i1 {a.b = 1 : i64}, %x: i32) -> i32 attributes {note} {
func.func @blocks(%c: i1 {a.b = 1}, %x: i32) -> i32 attributes {note} {
  // CHECK: cf.assert %c, "must hold"
  cf.assert %c, "must hold"
  // CHECK: func.call @outside(%x) : (i32) -> (i32, f32)
  %r:2 = call @outside(%x) : (i32) -> (i32, f32)
  // CHECK: cf.cond_br %c, ^[[A:.*]], ^[[B:.*]](%x : i32)
  cf.cond_br %c, ^a, ^b(%x : i32)
^a:
  // CHECK: cf.br ^[[B]](%{{.*}} : i32)
  cf.br ^b(%r#0 : i32)
^b(%y: i32):
  return %y : i32
}
