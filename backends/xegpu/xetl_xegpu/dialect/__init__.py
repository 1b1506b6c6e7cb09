"""XeGPU as MLIR 22 has it."""
