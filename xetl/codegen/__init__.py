"""Loops and vectors to LLVM IR, for any backend that wants it."""
