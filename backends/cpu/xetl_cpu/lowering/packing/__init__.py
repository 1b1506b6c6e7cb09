"""Parts of `pack-operands`: what can be packed for many programs, where, and when."""
