"""Long jobs: their chunks are computed in this process, in other processes or on a cluster, and they are
resumed from their folders."""
