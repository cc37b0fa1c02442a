"""Multi-scale language models: tokens of several symbols."""
