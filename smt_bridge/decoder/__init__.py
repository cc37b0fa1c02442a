"""The embedded phrase-based engine. It reads Moses' own model files and searches by stacks or cube pruning,
compiled by numba or in plain Python."""
