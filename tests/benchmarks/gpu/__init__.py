"""What the toolkit reaches on a GPU: see `__main__`."""
