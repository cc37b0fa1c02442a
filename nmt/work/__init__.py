"""Long jobs in chunks, computed in this process, in others or on a cluster, and the folders that let them
resume."""
