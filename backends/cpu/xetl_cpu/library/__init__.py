"""Products as calls of ``xsmm_*`` functions, and who serves these."""
