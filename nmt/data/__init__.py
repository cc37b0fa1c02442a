"""Text becomes ids here: words only, no torch before batches.py."""
