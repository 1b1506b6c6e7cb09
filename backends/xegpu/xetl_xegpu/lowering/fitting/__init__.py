"""Parts of the pass `fit-registers`."""
