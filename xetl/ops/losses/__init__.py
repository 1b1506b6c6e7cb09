"""Losses over classes and elements, and those fused with a product."""
