"""Weights from n-best lists: MERT, batch MIRA, PRO."""

RESTARTS = 20  # random starts of MERT besides the given ones, as Moses' mert
