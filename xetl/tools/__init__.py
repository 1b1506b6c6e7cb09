"""The commands `xetl` and `xetl-opt`, and the modules they use."""
