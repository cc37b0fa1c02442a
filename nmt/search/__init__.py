"""Beam search over anything with start, step and reorder."""
