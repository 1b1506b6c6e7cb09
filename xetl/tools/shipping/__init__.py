"""The files of `xetl compile`: libraries, build files, Python wheels."""
