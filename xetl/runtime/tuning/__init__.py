"""Constants that are chosen at a launch: by timing configs, or by functions."""
