"""The output layer in whose tree words move while it is trained (Jernite 2018, chapter 3)."""
