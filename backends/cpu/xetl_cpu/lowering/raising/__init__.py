"""Parts of `raise-to-brgemm`: operands, accumulations, what is left of a loop."""
