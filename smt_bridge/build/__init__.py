"""Build a hybrid system from a parallel text."""
