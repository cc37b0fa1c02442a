"""Unite and rescore n-best lists."""
