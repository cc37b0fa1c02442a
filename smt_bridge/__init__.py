"""What carries neural scores to a statistical MT system, and back. Imports nmt; nmt never imports this."""
