"""Torch's device, threads, matrix product back end and reduced precision; autograd helpers."""
