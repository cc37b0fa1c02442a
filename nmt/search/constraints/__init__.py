"""What translations must contain and must not. A kind of constraint is one file; `rows.py` lets the beam keep
to them."""
