"""`xetl doctor --gpu`: every kind of message and instruction, compared with NumPy's."""
