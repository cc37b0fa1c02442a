"""The encoder-decoder made of attention: `model.type: transformer`."""
