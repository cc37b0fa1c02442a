"""Corpora as token ids, and their batches. Torch is needed for batches alone."""
