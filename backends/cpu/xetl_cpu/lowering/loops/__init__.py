"""Parts of convert-xetile-to-loops: where a value lives and how it is read."""
