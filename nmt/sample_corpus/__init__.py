"""A small English-French corpus that a grammar writes, to try things with: `nmt-init DIR --sample-corpus`."""
