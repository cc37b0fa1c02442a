"""Neural machine translation that works hand in hand with statistical MT. `import nmt` costs nothing: no
torch here."""

__version__ = "0.5.0"
