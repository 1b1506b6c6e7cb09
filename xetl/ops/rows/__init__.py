"""Functions along rows: softmax, norms, reductions, order."""
