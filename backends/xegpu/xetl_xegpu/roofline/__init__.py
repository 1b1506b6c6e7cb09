"""The roofline of kernels on GPUs: counts of their work, and a model of costs."""
