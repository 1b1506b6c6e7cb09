"""Parts of insert-prefetches."""
