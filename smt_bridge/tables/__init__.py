"""Filter, score, extend and report on phrase tables."""
