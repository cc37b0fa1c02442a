"""One file a command; the only place that reads options."""
