"""Settings: their ranges, and how YAML and JSON become values."""
