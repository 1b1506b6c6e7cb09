"""The passes of the CPU backend, one a file, in the order of `xetl_cpu.pipeline`."""
