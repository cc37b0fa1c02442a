"""The commands, one module each. Command-line options are read only here."""
