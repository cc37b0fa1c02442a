"""How torch computes: device and threads, the back end of matrix products, reduced precision."""
