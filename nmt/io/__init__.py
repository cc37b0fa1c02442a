"""Files and folders: reading, writing, checksums, locks, and the progress of long work."""
