"""Parts of `pack-operands`: which operands can be packed for many programs, and how."""
