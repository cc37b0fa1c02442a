"""Long jobs: who computes their chunks, and where finished chunks are kept."""
