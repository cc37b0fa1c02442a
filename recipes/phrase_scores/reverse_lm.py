"""A 5-gram model of reversed sentences, the control of this recipe: reverse_lm.py TEXT > ARPA"""

import sys

from nmt.io import files
from nmt.ngram import count_models, estimators

if __name__ == "__main__":
    sentences = (files.split_words(text)[::-1] for text in files.read_lines(sys.argv[1]))
    count_models.write_arpa(
        estimators.estimate_kneser_ney(sentences, estimators.KneserNeyConfig(order=5)), "-"
    )
