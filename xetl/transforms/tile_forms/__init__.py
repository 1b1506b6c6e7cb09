"""Other ways of writing a tile, as the one way that the passes behind know."""
