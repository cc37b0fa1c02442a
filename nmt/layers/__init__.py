"""Cells and outputs: equations as modules."""
