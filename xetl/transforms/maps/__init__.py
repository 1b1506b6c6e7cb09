"""Maps of the values of a kernel: where they are written, and how they are found."""
