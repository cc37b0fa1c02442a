"""Work in chunks, by executors: in this process, or in several."""
