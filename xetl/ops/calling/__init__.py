"""Declarations of functions, and the steps of a call."""
