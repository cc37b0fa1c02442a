"""Encoders pre-trained on plain text by what holds its sentences together (000, chapter 5)."""
