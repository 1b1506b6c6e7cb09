"""Rules of `expand-forms`: each gives what one operation is in terms of others."""
