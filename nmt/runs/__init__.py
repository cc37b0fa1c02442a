"""Run directories: what earlier versions wrote, in today's terms."""
