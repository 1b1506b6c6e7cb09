"""Arithmetic on floats: each op computes in f32 at least and rounds once.

Source: MLIR, `arith` dialect.
"""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Commutative

from .elementwise import FloatBinaryOp, FloatUnaryOp


@irdl_op_definition
class AddfOp(FloatBinaryOp):
    """Sum."""

    name = "arith.addf"

    traits = traits_def(Commutative())


@irdl_op_definition
class SubfOp(FloatBinaryOp):
    """Difference."""

    name = "arith.subf"


@irdl_op_definition
class MulfOp(FloatBinaryOp):
    """Product."""

    name = "arith.mulf"

    traits = traits_def(Commutative())


@irdl_op_definition
class DivfOp(FloatBinaryOp):
    """Quotient."""

    name = "arith.divf"


@irdl_op_definition
class RemfOp(FloatBinaryOp):
    """Remainder with the sign of the left side (C's fmod)."""

    name = "arith.remf"


@irdl_op_definition
class MaximumfOp(FloatBinaryOp):
    """Maximum; NaN if either is NaN, and -0 < 0."""

    name = "arith.maximumf"

    traits = traits_def(Commutative())


@irdl_op_definition
class MinimumfOp(FloatBinaryOp):
    """Minimum; NaN if either is NaN, and -0 < 0."""

    name = "arith.minimumf"

    traits = traits_def(Commutative())


@irdl_op_definition
class MaxnumfOp(FloatBinaryOp):
    """Maximum; the other one if either is NaN."""

    name = "arith.maxnumf"

    traits = traits_def(Commutative())


@irdl_op_definition
class MinnumfOp(FloatBinaryOp):
    """Minimum; the other one if either is NaN."""

    name = "arith.minnumf"

    traits = traits_def(Commutative())


@irdl_op_definition
class NegfOp(FloatUnaryOp):
    """Negation: flips the sign bit, of NaN too."""

    name = "arith.negf"


FLOAT_OPS = (
    AddfOp,
    SubfOp,
    MulfOp,
    DivfOp,
    RemfOp,
    MaximumfOp,
    MinimumfOp,
    MaxnumfOp,
    MinnumfOp,
    NegfOp,
)
