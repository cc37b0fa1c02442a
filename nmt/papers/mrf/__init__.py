"""A Markov random field over words, trained by its pseudo-likelihood or by a lifted bound."""
