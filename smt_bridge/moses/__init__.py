"""Files and programs of Moses itself."""
