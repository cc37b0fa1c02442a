"""N-gram scores of a CSLM: distinct contexts once with first-layer tables, against one by one and batches of
64.

python tests/benchmarks/cslm.py --input nbest.txt [--matmul onednn] [--vocabulary 15000]

`--input`: an n-best list of Moses or nmt-translate, whose n-grams are scored by the network of section 4.4.1
(6 x 512 -> 1536 -> 1024 -> V), not trained.
"""

from timing import interleave, report  # first: it sets the thread policy

import argparse
from itertools import islice

import numpy as np
import torch

from nmt.formats import nbest
from nmt.compute import device
from nmt.text.vocab import Vocab
from nmt.layers.batch_scores import distinct_windows
from nmt.lm.cslm import CSLM
from nmt.lm.cslm import CSLMConfig
from nmt.lm.cslm import ngrams

SINGLE, BATCHED, SAMPLE = 200, 6400, 50000  # n-grams scored by each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, metavar="NBEST")
    parser.add_argument("--matmul", default="mkl", choices=device.BACK_ENDS)
    parser.add_argument("--vocabulary", type=int, default=15000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    device.use_back_end(args.matmul)
    texts = [hypothesis.text for hypothesis in islice(nbest.read(args.input), 5000)]
    vocab = Vocab.count(texts, args.vocabulary)
    torch.manual_seed(1)
    model = CSLM(CSLMConfig(init="glorot"), args.vocabulary + 3).eval()
    contexts, words = (part[:SAMPLE] for part in ngrams([vocab.encode(text) for text in texts], model.order))
    unique = len(distinct_windows(torch.from_numpy(contexts))[0])
    print(f"{len(words):,} n-grams of real n-best lists, {unique:,} distinct contexts, {len(vocab):,} words")

    def direct(count: int, size: int) -> np.ndarray:
        found = []
        with torch.no_grad():
            for start in range(0, count, size):
                rows = torch.from_numpy(contexts[start : start + size])
                scores = model.output.log_probs(model.features(rows))
                found.append(scores.gather(1, torch.from_numpy(words[start : start + size, None]))[:, 0])
        return torch.cat(found).numpy()

    error = np.abs(model.ngram_scores().score(contexts, words)[:BATCHED] - direct(BATCHED, 64)).max()
    seconds = interleave(
        {
            "one by one": lambda: direct(SINGLE, 1),
            "batches of 64": lambda: direct(BATCHED, 64),
            "distinct contexts, tables": lambda: model.ngram_scores().score(contexts, words),
            "the same, log Z taken as 0": lambda: model.ngram_scores(normalized=True).score(contexts, words),
        },
        rounds=3,
    )
    counts = [SINGLE, BATCHED, len(words), len(words)]
    each = {name: value / count for (name, value), count in zip(seconds.items(), counts, strict=True)}
    report(
        "a thousand n-grams",
        {name: 1000 * value for name, value in each.items()},
        "at least 50x one by one, exact to 1e-5",
    )
    for name, value in each.items():
        print(f"  {name:<52} {1 / value:,.0f} n-grams a CPU second")
    print(f"  largest difference from batches of 64: {error:.1e}")


if __name__ == "__main__":
    main()
