"""File formats of Moses: n-best lists and phrase tables, as bytes and text."""
