"""The actions of nmt-analyze; registry.py lists them."""
