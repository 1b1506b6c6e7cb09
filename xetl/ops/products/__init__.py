"""Products of matrices: the kernel, its plans, and the functions made of it."""
