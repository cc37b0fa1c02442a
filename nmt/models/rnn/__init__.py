"""The RNN encoder-decoders of Cho et al. (2014) and Bahdanau et al. (2015)."""
