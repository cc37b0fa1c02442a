"""Settings with their ranges, and conversion of YAML and JSON to values."""
