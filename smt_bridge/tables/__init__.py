"""Filter, prune, score, extend and report on phrase tables."""
