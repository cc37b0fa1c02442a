"""Count-based n-gram models, without torch."""
