"""n-best lists: united, rescored."""
