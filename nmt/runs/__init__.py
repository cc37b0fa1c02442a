"""Run directories: their files, and the trained models in them."""
