"""`xetl doctor --gpu`: tests every kind of message and instruction of a device."""
