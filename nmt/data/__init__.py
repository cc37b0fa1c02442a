"""Corpora as ids and their batches; only words and numpy arrays until batches.py, which needs torch."""
