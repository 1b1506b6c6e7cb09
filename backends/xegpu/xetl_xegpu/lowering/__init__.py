"""From blocks of tiles to lanes, a pass a file."""
