"""What all tests need: the driver of intel-opencl-rt is made known before any runs."""

from xetl_xegpu.launch import icd

icd.set_up()
