"""The embedded phrase-based engine. It reads Moses' own model files and runs a stack search, compiled by
numba or in plain Python."""
