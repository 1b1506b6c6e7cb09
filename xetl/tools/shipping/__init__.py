"""What `xetl compile` makes of an export: libraries, build files, Python wheels."""
