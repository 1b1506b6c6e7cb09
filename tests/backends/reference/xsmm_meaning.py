"""What the operations of the CPU backend's `xsmm` dialect mean, for the reference.

The layout of a panel is the one of `xetl_cpu.microkernels`: k in groups of `k_pack`,
a group's elements side by side. What nobody reads is made NaN, or a strange number.
"""

import numpy as np

from xetl.dialects.xetile import TileType
from xetl_reference.memory import allocate
from xetl_reference.values import dtype_of


def _named(op, values):
    """The operands' values by the values they belong to."""
    return dict(zip(op.operands, values))


def _operand(value, type_, step, along, depth):
    """An operand of one product: a tile is loaded, moved ``step`` times."""
    if not isinstance(type_, TileType):
        return value
    distance = [0, 0]
    distance[along] = step * depth
    return value.moved(*distance).load(*type_.shape)


def _exact(values, is_unsigned):
    """Numbers that products are exact in; bytes travel signed, whatever they mean."""
    if values.dtype == np.int8 and is_unsigned:
        values = values.view(np.uint8)
    return values.astype(np.int64 if values.dtype.kind in "iu" else np.float64)


def brgemm(op):
    trans_a, trans_b = op.trans_a is not None, op.trans_b is not None
    m, n, depth = op.shape()
    a_unsigned, b_unsigned = op.unsigned
    dtype = dtype_of(op.result.type)
    is_integer = np.dtype(dtype).kind == "i"
    nobody = -(10**9) if is_integer else np.nan

    def run(*values):
        given = _named(op, values)
        total = np.zeros((m, n), np.int64 if is_integer else np.float64)
        if op.acc is not None:
            total += given[op.acc].astype(total.dtype)
        for step in range(1 if op.count is None else given[op.count]):
            a = _operand(given[op.a], op.a.type, step, 0 if trans_a else 1, depth)
            b = _operand(given[op.b], op.b.type, step, 1 if trans_b else 0, depth)
            a, b = a.T if trans_a else a, b.T if trans_b else b
            total += _exact(a, a_unsigned) @ _exact(b, b_unsigned)
        result = total.astype(dtype)
        if op.rows is not None:
            result[max(given[op.rows], 0) :] = nobody
        if op.cols is not None:
            result[:, max(given[op.cols], 0) :] = nobody
        return result

    return run


def meanings():
    """The table for `run_module`."""

    def pack(op):
        is_unsigned = op.blocking().arithmetic.unsigned[op.is_b]
        if op.is_b:
            return _pack_b(op.blocking(), is_unsigned)
        return _pack_a(is_unsigned)

    def block_gemm(op):
        return _block_gemm(op, op.blocking())

    return {
        "xsmm.brgemm.tile": brgemm,
        "xsmm.pack": pack,
        "xsmm.block_gemm": block_gemm,
        "xsmm.skinny_gemm": skinny_gemm,
        "cpu.packed_memory": packed_memory,
        "cpu.thread_count": lambda op: lambda: np.int64(1),
        "cpu.thread_number": lambda op: lambda: np.int64(0),
        "cpu.is_new": lambda op: lambda value: True,
        "xsmm.brgemm.dispatch": _dispatch,
        "xsmm.brgemm": _dispatched_brgemm,
        "xsmm.IntelAMXtileConfig.dispatch": _dispatch,
        "xsmm.IntelAMXtileConfig": _configure,
    }


def _dispatch(op):
    """The number of a kernel means nothing: who invokes it asks the operation."""
    return lambda: np.int64(1)


def _configure(op):
    return lambda kernel, state: None


def _dispatched_brgemm(op):
    dispatch = op.kernel.owner
    m, n, k, lda, ldb, ldc, stride_a, stride_b = dispatch.size_list()
    flags = dispatch.flag_names()

    def block(view, number, stride, shape, strides):
        at = view.offset + number * stride
        return view.memory.window(view.dtype, at, shape, strides).astype(np.float64)

    def run(kernel, a, b, c, batch):
        to = c.memory.window(c.dtype, c.offset, (m, n), (ldc, 1))
        total = np.zeros((m, n)) if "beta_0" in flags else to.astype(np.float64)
        for number in range(batch):
            left = block(a, number, stride_a, (m, k), (lda, 1))
            if "vnni_b" in flags:
                pairs = block(b, number, stride_b, (k // 2, n, 2), (2 * ldb, 2, 1))
                right = pairs.transpose(0, 2, 1).reshape(k, n)
            else:
                right = block(b, number, stride_b, (k, n), (ldb, 1))
            total += left @ right
        to[...] = total.astype(to.dtype)

    return run


def packed_memory(op):
    """No launch brings packed elements here: what is there is missing."""

    def run(count, own_count, source, is_wanted, *facts):
        return allocate(op.memory.type, [own_count]), is_wanted, is_wanted, is_wanted

    return run


def skinny_gemm(op):
    a_unsigned, b_unsigned = op.blocking().arithmetic.unsigned

    def run(a, m0, k0, rows, k, b, bk0, bn0, n, elements, c):
        if rows > 0 and k > 0 and n > 0:
            left = _exact(_part(a, m0, k0, rows, k), a_unsigned)
            right = _exact(_part(b, bk0, bn0, k, n), b_unsigned)
            to = _part(c, 0, 0, rows, n)
            to += (left @ right).astype(to.dtype)

    return run


def _pack_b(blocking, is_unsigned):
    nr, group = blocking.nr, blocking.k_pack

    def run(source, k0, n0, k_valid, n_valid, k, n, dest, offset, stride):
        groups, panels = -(-k // group), -(-n // nr)
        block = np.zeros((groups * group, panels * nr), dest.dtype)
        rows, columns = min(k_valid, k), min(n_valid, block.shape[1])
        if rows > 0 and columns > 0:
            part = _part(source, k0, n0, rows, columns)
            block[:rows, :columns] = _widened(part, dest, is_unsigned)
        for number in range(panels):
            panel = block[:, number * nr : (number + 1) * nr]
            order = panel.reshape(groups, group, nr).transpose(0, 2, 1)
            to = _line(dest, offset + number * stride, panel.size)
            to[...] = order.reshape(-1)

    return run


def _widened(values, dest, is_unsigned):
    """Bytes that stay bytes keep their bits."""
    return values if dest.dtype == np.int8 else _exact(values, is_unsigned)


def _pack_a(is_unsigned):
    def run(source, m0, k0, rows_valid, k_valid, rows, k, dest, offset, stride):
        to = dest.memory.window(
            dest.dtype, dest.offset + offset, (rows, k), (stride, 1)
        )
        to[...] = 0
        rows, columns = min(rows_valid, rows), min(k_valid, k)
        if rows > 0 and columns > 0:
            part = _part(source, m0, k0, rows, columns)
            to[:rows, :columns] = _widened(part, dest, is_unsigned)

    return run


def _block_gemm(op, blocking):
    nr, group = blocking.nr, blocking.k_pack
    a_unsigned, b_unsigned = blocking.arithmetic.unsigned

    def run(*values):
        given = _named(op, values)
        a, m0, k0, rows, k, b, offset, stride, panels, c = values[:10]
        if rows <= 0:
            return
        part = _exact(_part(a, m0, k0, rows, k), a_unsigned)
        left = np.zeros((rows, -(-k // group) * group), part.dtype)
        left[:, :k] = part
        for number in range(panels):
            start = offset + number * stride
            if op.ldb is None:
                line = _line(b, start, left.shape[1] * nr)
            else:
                width = min(nr, given[op.b_cols] - number * nr)
                line = np.zeros((k, nr), part.dtype)
                for row in range(k):
                    line[row, :width] = _line(b, start + row * given[op.ldb], width)
            order = line.reshape(-1, nr, group).transpose(0, 2, 1)
            panel = _exact(order.reshape(-1, nr), b_unsigned)
            scratch = _part(c, 0, number * nr, rows, nr)
            sums = left @ panel
            if op.accumulate is None or given[op.accumulate]:
                sums = sums + _exact(scratch, False)
            if op.out is None or not given[op.is_wanted]:
                scratch[...] = sums.astype(scratch.dtype)
                continue
            # Of the accumulators' type first: that is what is rounded.
            sums = sums.astype(scratch.dtype)
            row, column, cols = (given[v] for v in (op.out_row, op.out_col, op.cols))
            there = min(nr, cols - number * nr)
            if there > 0:
                to = _part(given[op.out], row, column + number * nr, rows, there)
                to[...] = sums[:, :there].astype(to.dtype)

    return run


def _part(view, row, column, rows, columns):
    offset = view.at((row, column))
    return view.memory.window(view.dtype, offset, (rows, columns), view.strides)


def _line(view, offset, count):
    return view.memory.window(view.dtype, view.offset + offset, (count,), (1,))
