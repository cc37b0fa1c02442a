"""Hybrid systems: a phrase-based model and its networks in one folder, from raw text to raw text."""
