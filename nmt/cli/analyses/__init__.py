"""The actions of nmt-analyze; nmt/cli/analyze.py lists them."""
