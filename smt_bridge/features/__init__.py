"""Features of a log-linear system. Each gives one score per pair of phrases or sentences."""
