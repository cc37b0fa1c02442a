"""Moses' file formats: n-best lists, phrase tables, word alignments; and word vectors."""
