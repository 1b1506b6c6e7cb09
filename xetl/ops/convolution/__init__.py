"""Convolutions: as products of columns, or from the image itself."""
