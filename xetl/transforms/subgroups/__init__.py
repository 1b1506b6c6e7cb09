"""How a workgroup's values become those of its subgroups: what the pass is made of."""
