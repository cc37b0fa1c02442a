"""Long jobs in chunks, computed in this process, in other processes or on a cluster, and the folders from
which they are resumed."""
