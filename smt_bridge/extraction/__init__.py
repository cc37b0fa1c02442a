"""Phrase pairs, their scores and their orientations from a word-aligned corpus, by the rules of Moses'
training scripts.

corpus     words as numbers, in the order in which LC_ALL=C sorts lines of phrases
instances  all phrase pairs of a block of sentences (compiled)
buckets    an external sort: instances are spread over files by their source, so that memory stays bounded
counts     distinct pairs: frequencies, best alignments, orientations
scores     phi, lexical weights and reordering probabilities
lines      the two tables as text
tables     the way through all of them
mapreduce  the same way for several workers, and tasks, which they compute
"""
