"""Loops over elements, as users write them for numba: vectors of iterations."""
