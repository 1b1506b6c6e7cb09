"""The steps of a call: bind, specialise, look up or compile, check arrays, launch."""
