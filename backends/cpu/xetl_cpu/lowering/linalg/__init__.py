"""Products written as `linalg` on memrefs, as the texts of seed 003 have them."""
