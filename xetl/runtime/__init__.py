"""The call of a kernel: bind, specialise, look up or compile, check arrays, launch."""
