"""The actions of nmt-analyze, one file each; registry.py lists them."""
