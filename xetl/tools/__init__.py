"""The commands `xetl` and `xetl-opt`, and what they are made of."""
