"""The parts of `distribute-to-lanes`."""
