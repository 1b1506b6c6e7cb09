"""What limits a kernel on a GPU: counts of what it does, and a model of costs."""
