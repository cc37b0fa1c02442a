"""The commands, one per file; no other package reads command-line options."""
