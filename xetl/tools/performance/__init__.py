"""Reports of how fast something is: tables, plots, and the limits of the machine."""
