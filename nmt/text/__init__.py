"""Text as strings, without tensors: tokenization, casing, subwords, sentences, vocabularies, inspection."""
