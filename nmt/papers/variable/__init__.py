"""Recurrent cells that compute a part of their state at each step (Jernite 2018, section 2.4)."""
