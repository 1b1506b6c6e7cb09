// RUN: xetl-opt %s -p reduce-after-loops --split-input-file | filecheck %s

// Lanes add their own columns; both loops carry the parts, and the sums stand behind.
// CHECK-LABEL: gpu.func @softmax
// CHECK:       %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<8x16xf32>
// CHECK:       %[[A:.*]] = scf.for {{.*}} iter_args(%[[T:.*]] = %[[ZEROS]]) -> (vector<8x16xf32>)
// CHECK-NOT:     multi_reduction
// CHECK:         %[[F:.*]] = vector.broadcast %{{.*}} : vector<8x1xf32> to vector<8x16xf32>
// CHECK-NEXT:    %[[M:.*]] = arith.mulf %[[T]], %[[F]] : vector<8x16xf32>
// CHECK-NEXT:    %[[N:.*]] = arith.addf %[[M]], %{{.*}} : vector<8x16xf32>
// CHECK-NEXT:    scf.yield %[[N]]
// CHECK:       %[[B:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[A]]) -> (vector<8x16xf32>)
// CHECK-NOT:     multi_reduction
// CHECK:       }
// CHECK-NEXT:  %[[NONE:.*]] = arith.constant dense<-0.000000e+00> : vector<8xf32>
// CHECK-NEXT:  %[[S:.*]] = vector.multi_reduction <add>, %[[B]], %[[NONE]] [1]
// CHECK-NEXT:  %[[C:.*]] = vector.shape_cast %[[S]] : vector<8xf32> to vector<8x1xf32>
// CHECK-NEXT:  arith.divf %[[C]]
gpu.module @m {
  gpu.func @softmax(%v: vector<8x16xf32>, %f: vector<8x1xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : vector<8x1xf32>
    %none = arith.constant dense<-0.0> : vector<8xf32>
    %a = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zero) -> (vector<8x1xf32>) {
      %k = arith.mulf %t, %f : vector<8x1xf32>
      %s = vector.multi_reduction <add>, %v, %none [1] : vector<8x16xf32> to vector<8xf32>
      %r = vector.shape_cast %s : vector<8xf32> to vector<8x1xf32>
      %u = arith.addf %k, %r : vector<8x1xf32>
      scf.yield %u : vector<8x1xf32>
    }
    %b = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a) -> (vector<8x1xf32>) {
      %s = vector.multi_reduction <add>, %v, %none [1] : vector<8x16xf32> to vector<8xf32>
      %r = vector.shape_cast %s : vector<8xf32> to vector<8x1xf32>
      %u = arith.addf %r, %t : vector<8x1xf32>
      scf.yield %u : vector<8x1xf32>
    }
    %d = arith.divf %b, %f : vector<8x1xf32>
    gpu.return
  }
}

// -----
// What begins elsewhere, or is read in between, stays; so do extrema.
// CHECK-LABEL:   gpu.func @kept
// CHECK-COUNT-3: vector.multi_reduction
// CHECK:         scf.yield
// CHECK-NOT:     vector.multi_reduction
gpu.module @m {
  gpu.func @kept(%v: vector<8x16xf32>, %f: vector<8x1xf32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : vector<8x1xf32>
    %none = arith.constant dense<-0.0> : vector<8xf32>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %f, %y = %zero, %z = %zero) -> (vector<8x1xf32>, vector<8x1xf32>, vector<8x1xf32>) {
      %s0 = vector.multi_reduction <add>, %v, %none [1] : vector<8x16xf32> to vector<8xf32>
      %r0 = vector.shape_cast %s0 : vector<8xf32> to vector<8x1xf32>
      %u0 = arith.addf %x, %r0 : vector<8x1xf32>
      %y2 = arith.mulf %y, %y : vector<8x1xf32>
      %s1 = vector.multi_reduction <add>, %v, %none [1] : vector<8x16xf32> to vector<8xf32>
      %r1 = vector.shape_cast %s1 : vector<8xf32> to vector<8x1xf32>
      %u1 = arith.addf %y2, %r1 : vector<8x1xf32>
      %s2 = vector.multi_reduction <maxnumf>, %v, %none [1] : vector<8x16xf32> to vector<8xf32>
      %r2 = vector.shape_cast %s2 : vector<8xf32> to vector<8x1xf32>
      %u2 = arith.addf %z, %r2 : vector<8x1xf32>
      scf.yield %u0, %u1, %u2 : vector<8x1xf32>, vector<8x1xf32>, vector<8x1xf32>
    }
    gpu.return
  }
}
