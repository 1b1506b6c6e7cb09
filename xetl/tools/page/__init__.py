"""The page of `kernel.explain().html()`: source beside the IR of each stage."""
