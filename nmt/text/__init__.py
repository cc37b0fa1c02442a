"""Text as strings: no ids, no tensors."""
