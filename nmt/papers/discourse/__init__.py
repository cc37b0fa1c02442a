"""Encoders pre-trained on plain text by what holds its sentences together (Jernite 2018, chapter 5)."""
