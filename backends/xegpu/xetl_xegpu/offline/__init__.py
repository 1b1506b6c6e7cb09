"""Intel's compiler without a device: what it says about a kernel."""
