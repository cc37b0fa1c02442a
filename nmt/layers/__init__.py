"""Layers of neural networks as torch modules: cells, attention, Transformer blocks, output layers."""
