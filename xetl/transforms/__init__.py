"""Passes, one a file, each a ModulePass of the file's name; `stages` checks between."""
