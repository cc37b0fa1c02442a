"""Ids become scores: encoders, decoders, translators."""
