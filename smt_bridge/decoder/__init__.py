"""The embedded phrase-based engine: models in Moses' own files, stack search compiled by numba, and its twin
in plain Python."""
