"""Emission: from the lowered operations of a launch to LLVM IR."""
