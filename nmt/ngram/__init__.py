"""Count models: no torch."""
