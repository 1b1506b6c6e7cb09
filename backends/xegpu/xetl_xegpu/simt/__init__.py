"""What one lane does: the dialect between XeGPU and LLVM."""
