"""From lanes to LLVM IR to SPIR-V."""
