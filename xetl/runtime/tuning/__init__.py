"""Constants of kernels that a launch chooses: by timing configs, or by functions."""
