"""Moses' own files and programs."""
