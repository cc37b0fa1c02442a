"""What the lines of a parallel text look like, counted while they are read once."""
