"""Devices, queues, programs and memory, through dpctl."""
