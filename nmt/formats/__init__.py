"""Moses' file formats: n-best lists, phrase tables, word alignments; word vectors; parallel text of
translators and shared tasks."""
