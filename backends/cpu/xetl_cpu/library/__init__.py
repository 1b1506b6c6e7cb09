"""Products as calls of ``xsmm_*`` functions, and the libraries that have these."""
