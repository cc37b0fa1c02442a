"""File formats: Moses' n-best lists, phrase tables and word alignments; parallel text of translators and
shared tasks; word vectors; folders of Marian's and CTranslate2's models."""
