// RUN: xetl-opt %s -p check-barriers --split-input-file --verify-diagnostics | filecheck %s
// A barrier is for all subgroups of a workgroup; nothing is changed.

// Uniform: programs, arguments, sizes, data at uniform addresses, equal results.
// CHECK-LABEL: @all_reach_it
gpu.module @m {
  gpu.func @all_reach_it(%m: memref<?xindex>, %n: index, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %id = gpu.subgroup_id : index
    %block = gpu.block_id x
    %first = arith.cmpi eq, %id, %c0 : index
    %count = memref.load %m[%block] : memref<?xindex>
    // An if that not all take may stand beside a barrier.
    %same = scf.if %first -> (index) {
      memref.store %c1, %m[%id] : memref<?xindex>
      scf.yield %n : index
    } else {
      scf.yield %n : index
    }
    scf.for %i = %block to %count step %same {
      gpu.barrier
      %odd = arith.cmpi eq, %i, %c1 : index
      scf.if %odd {
        gpu.barrier
      }
    }
    // Each over a part of its own, of one length for all.
    %begin = arith.muli %id, %n : index
    %next = arith.addi %id, %c1 : index
    %end = arith.muli %next, %n : index
    scf.for %i = %begin to %end step %c1 {
      gpu.barrier
    }
    %lower = arith.addi %begin, %count : index
    %upper = arith.addi %lower, %c8 : index
    scf.for %i = %lower to %upper step %c8 {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// CHECK: error[X0707]: `gpu.barrier`: not all subgroups of a workgroup reach this barrier
// CHECK-NEXT: --> {{.*}}:11:7
// CHECK: subgroups part at `scf.if` at line 10, which depends on `gpu.thread_id` at line 8
// CHECK: help: move the barrier
gpu.module @m {
  gpu.func @in_a_branch(%n: index) kernel {
    %id = gpu.thread_id x
    %first = arith.cmpi slt, %id, %n : index
    scf.if %first {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// CHECK: subgroups part at `scf.for` at line 6, which depends on `gpu.subgroup_id`
gpu.module @m {
  gpu.func @in_a_loop(%n: index, %step: index) kernel {
    %id = gpu.subgroup_id : index
    scf.for %i = %id to %n step %step {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// Begins differ by twice as much as ends do.
// CHECK: subgroups part at `scf.for`
gpu.module @m {
  gpu.func @of_unequal_length(%n: index) kernel {
    %c1 = arith.constant 1 : index
    %id = gpu.subgroup_id : index
    %begin = arith.muli %id, %n : index
    %end = arith.addi %begin, %begin : index
    scf.for %i = %begin to %end step %c1 {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// CHECK: subgroups part at `scf.while` at line 6, which depends on `gpu.lane_id`
gpu.module @m {
  gpu.func @in_a_while(%n: index) kernel {
    %id = gpu.lane_id
    %r = scf.while (%i = %id) : (index) -> index {
      %more = arith.cmpi slt, %i, %n : index
      scf.condition(%more) %i : index
    } do {
    ^bb0(%j: index):
      gpu.barrier
      %k = arith.addi %j, %n : index
      scf.yield %k : index
    }
    gpu.return
  }
}
// -----
// The value goes round the loop once before it decides.
// CHECK: subgroups part at `scf.if` at line 11, which depends on `gpu.subgroup_id`
gpu.module @m {
  gpu.func @carried(%n: index, %t: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %id = gpu.subgroup_id : index
    %other = arith.cmpi eq, %id, %n : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%go = %t) -> (i1) {
      scf.if %go {
        gpu.barrier
      }
      scf.yield %other : i1
    }
    gpu.return
  }
}
// -----
// What comes out of a branch that they part at, differs; and out of such a loop.
// CHECK: subgroups part at `scf.if` at line 20, which depends on `gpu.subgroup_id`
gpu.module @m {
  gpu.func @results_of_branches(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %id = gpu.subgroup_id : index
    %first = arith.cmpi eq, %id, %c0 : index
    %a = scf.if %first -> (index) {
      scf.yield %c0 : index
    } else {
      scf.yield %c1 : index
    }
    %b = scf.for %i = %c0 to %a step %c1 iter_args(%s = %c0) -> (index) {
      %d = arith.addi %s, %c1 : index
      scf.yield %d : index
    }
    %late = arith.cmpi eq, %b, %c1 : index
    scf.if %late {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// What each loads from a place of its own, and what each gets from an atomic.
// CHECK: subgroups part at `scf.if` at line 10, which depends on `gpu.subgroup_id`
// CHECK: subgroups part at `scf.if` at line 9, which depends on `memref.atomic_rmw`
gpu.module @m {
  gpu.func @loaded(%m: memref<?xindex>, %n: index) kernel {
    %id = gpu.subgroup_id : index
    %mine = memref.load %m[%id] : memref<?xindex>
    %c = arith.cmpi eq, %mine, %n : index
    scf.if %c {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
gpu.module @m {
  gpu.func @ticket(%m: memref<?xindex>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // The last to come goes on.
    %old = memref.atomic_rmw addi %c1, %m[%c0] : (index, memref<?xindex>) -> index
    %last = arith.cmpi eq, %old, %n : index
    scf.if %last {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// Of a whole workgroup an atomic is done once: all get the same.
// CHECK-LABEL: @ticket_of_a_workgroup
gpu.module @m {
  gpu.func @ticket_of_a_workgroup(%m: memref<?xindex>, %n: index) kernel attributes {xetile.level = "workgroup"} {
    %c0 = arith.constant 0 : index
    %old = memref.atomic_rmw addi %n, %m[%c0] : (index, memref<?xindex>) -> index
    %last = arith.cmpi eq, %old, %n : index
    scf.if %last {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// One subgroup cannot part from itself; along an axis of one subgroup nothing differs.
// CHECK-LABEL: @alone
gpu.module @m {
  gpu.func @alone() kernel attributes {xetile.subgroups = array<i64: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %id = gpu.subgroup_id : index
    %first = arith.cmpi eq, %id, %c0 : index
    scf.if %first {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// CHECK-LABEL: @along_an_axis_of_one
gpu.module @m {
  gpu.func @along_an_axis_of_one() kernel attributes {xetile.subgroups = array<i64: 8, 1, 1>} {
    %c0 = arith.constant 0 : index
    %y = gpu.thread_id y
    %first = arith.cmpi eq, %y, %c0 : index
    scf.if %first {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// Named barriers are for those who take part in them.
// CHECK-LABEL: @named
gpu.module @m {
  gpu.func @named(%n: index) kernel {
    %id = gpu.subgroup_id : index
    %c1 = arith.constant 1 : i8
    %mine = arith.cmpi slt, %id, %n : index
    xegpu.alloc_nbarrier 1
    %b = xegpu.init_nbarrier %c1, %c1 : i8, i8 -> !xegpu.nbarrier
    scf.if %mine {
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
    }
    gpu.return
  }
}
// -----
// Through calls: the barrier is in one function, what differs comes from another.
// CHECK: `func.call`: not all subgroups of a workgroup reach this barrier
// CHECK: subgroups part at `scf.if` at line 18, which depends on `gpu.thread_id` at line 7
gpu.module @m {
  func.func @mine() -> index {
    %id = gpu.thread_id x
    return %id : index
  }
  func.func @wait() {
    gpu.barrier
    return
  }
  gpu.func @calls(%n: index) kernel {
    func.call @wait() : () -> ()
    %id = func.call @mine() : () -> index
    %c = arith.cmpi eq, %id, %n : index
    scf.if %c {
      func.call @wait() : () -> ()
    }
    gpu.return
  }
}
// -----
// An argument differs in the function that is called with it.
// CHECK: subgroups part at `scf.if` at line 7, which depends on `gpu.subgroup_id` at line 13
gpu.module @m {
  func.func @wait_for(%id: index, %n: index) {
    %c = arith.cmpi eq, %id, %n : index
    scf.if %c {
      gpu.barrier
    }
    return
  }
  gpu.func @passes_its_number(%n: index) kernel {
    %id = gpu.subgroup_id : index
    func.call @wait_for(%id, %n) : (index, index) -> ()
    gpu.return
  }
}
// -----
// Steps of different length are different numbers of steps.
// CHECK: subgroups part at `scf.for`{{.*}}, which depends on `gpu.subgroup_id`
gpu.module @m {
  gpu.func @steps_differ(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %id = gpu.subgroup_id : index
    %step = arith.addi %id, %c1 : index
    scf.for %i = %c0 to %n step %step {
      gpu.barrier
    }
    gpu.return
  }
}
// -----
// CHECK: subgroups part at `scf.parallel`{{.*}}, which depends on `gpu.subgroup_id`
gpu.module @m {
  gpu.func @in_a_parallel_loop(%n: index) kernel {
    %c1 = arith.constant 1 : index
    %id = gpu.subgroup_id : index
    scf.parallel (%i) = (%id) to (%n) step (%c1) {
      gpu.barrier
      scf.reduce
    }
    gpu.return
  }
}
