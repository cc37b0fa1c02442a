"""Weights from n-best lists: MERT, batch MIRA, PRO."""
