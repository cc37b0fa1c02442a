"""Features of a log-linear system, each a column of numbers for phrase pairs."""
