"""Tuning of feature weights for BLEU: the loop around the decoder, and MERT, batch MIRA and rankers."""
