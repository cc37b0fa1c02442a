"""Text or scores in, rows out."""
