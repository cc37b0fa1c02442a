"""One hybrid system from two text files."""
