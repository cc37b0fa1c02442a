"""Phrase tables: filtered, scored, reported on, and given new rows."""
