"""Attention: kernels forward and backward, and the functions made of them."""
