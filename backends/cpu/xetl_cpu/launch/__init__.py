"""The call of a compiled kernel: arguments, threads, and memory."""
