"""Phrase pairs, their scores and their orientations from a word-aligned corpus, by the rules of Moses'
training scripts.

config          settings of extraction and pruning
alignment       word alignments, alone or by several workers
fast_align      the default model of word alignment (compiled)
kept_model      a trained model of word alignment on disk, which aligns new text
packed_corpus   texts and links of millions of sentence pairs in arrays
heuristics      how the alignments of both directions are combined
symmetrization  the same, compiled
corpus          words as numbers, in the order in which LC_ALL=C sorts lines of phrases
instances       all phrase pairs of a block of sentences (compiled)
scores          distinct pairs: frequencies, best alignments, orientations; phi, lexical weights and
                reordering probabilities; lines of the two tables
tables          runs corpus, instances and scores in stages, by one process or several workers; phrase pairs
                are spread over buckets by their source, so that memory stays bounded
"""
