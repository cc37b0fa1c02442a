"""BPE: subword-nmt, SentencePiece and tokenizers beside nmt-subword, whose merges are those of subword-nmt.

NMT_DATA=... .venv/bin/python -m tests.benchmarks.peers.subword_nmt
"""

import filecmp
import os
import tempfile
from pathlib import Path

from nmt.io import files
from nmt.text.tokenize import Tokenizer
from . import compare, environment, ours

MERGES = 8000
SENTENCEPIECE = (
    "import sys, sentencepiece;"
    "sentencepiece.SentencePieceTrainer.train(input=sys.argv[1], model_prefix='spm',"
    f"model_type='bpe', vocab_size={MERGES}, num_threads=1, minloglevel=2)"
)
TOKENIZERS = (
    "import os, sys; os.environ['RAYON_NUM_THREADS'] = '1';"
    "from tokenizers import Tokenizer, models, pre_tokenizers, trainers;"
    "tokenizer = Tokenizer(models.BPE()); tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit();"
    f"trainer = trainers.BpeTrainer(vocab_size={MERGES}, show_progress=False, end_of_word_suffix='</w>');"
    "tokenizer.train([sys.argv[1]], trainer); tokenizer.save('tokenizers.json')"
)


def main() -> None:
    python = environment("bpe", "subword-nmt==0.3.8", "sentencepiece==0.2.1", "tokenizers==0.22.1")
    theirs = python.parent / "subword-nmt"
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = Tokenizer("en")
        text = Path(folder) / "tokenized.en"
        lines = files.read_lines(Path(os.environ["NMT_DATA"]) / "multi30k/train.en")
        files.write_text(text, (" ".join(tokenizer.words(line)) for line in lines))
        compare(
            f"learning {MERGES:,} merges from 29,000 lines of Multi30k, English, tokenized",
            {
                "subword-nmt": [theirs, "learn-bpe", "-s", str(MERGES), "-i", text, "-o", "theirs.codes"],
                "SentencePiece, BPE (other merges)": [python, "-c", SENTENCEPIECE, text],
                "tokenizers (other merges)": [python, "-c", TOKENIZERS, text],
                "nmt-subword learn": ours(f"nmt-subword learn -q --merges {MERGES} -i {text} -o ours.codes"),
            },
            Path(folder),
        )
        compare(
            "applying them to the same text",
            {
                "subword-nmt": [theirs, "apply-bpe", "-c", "theirs.codes", "-i", text, "-o", "theirs.bpe"],
                "nmt-subword apply": ours(f"nmt-subword apply -q ours.codes -i {text} -o ours.bpe"),
            },
            Path(folder),
        )
        for kind in ("codes", "bpe"):
            same = filecmp.cmp(f"{folder}/theirs.{kind}", f"{folder}/ours.{kind}", shallow=False)
            print(f"  {kind}: {'the same bytes' if same else 'not the same bytes'} as subword-nmt")


if __name__ == "__main__":
    main()
