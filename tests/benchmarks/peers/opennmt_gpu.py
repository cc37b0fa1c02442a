"""The training speed of OpenNMT-py 3.5.1 on a GPU, in target words a second:

    python -m tests.benchmarks.peers.opennmt_gpu FOLDER --model rnn --batch 128 [--updates 120] [--small]

FOLDER has train.src and train.tgt, one tokenized sentence a line: more of them than the updates read, as the
workers that make batches sort again at the end. OpenNMT-py is importable, without what its transforms and
translation need. It asks for torch < 2.3, so that its call of attention is adapted to newer ones, with the
same result. Its report lines give the speed: target words and one end symbol a sentence, without padding.

The RNN is the nearest to RNNsearch (Bahdanau et al. 2015) that it has: the state of its decoder is as wide as
both directions of its encoder, so that 1000 units are 500 a direction; it feeds the attentional vector to the
next step and has no maxout layer. The Transformer is the base model of Vaswani et al. 2017, not tied.
On a GPU both compute with fp16 autocast and loss scaling, the only mixed precision that it has with Adam.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.io import files
from .trainings import MODELS, vocabulary

PROGRAM = """
import contextlib, sys, types
import torch

class Vocab:  # of pyonmttok, a tokenizer of which training needs only this
    def __init__(self, tokens):
        self.ids_to_tokens = list(dict.fromkeys(tokens))
        self.tokens_to_ids = {token: i for i, token in enumerate(self.ids_to_tokens)}
        self.default_id = 0
    def __len__(self):
        return len(self.ids_to_tokens)
    def __getitem__(self, token):
        return self.tokens_to_ids.get(token, self.default_id)
    def __call__(self, tokens):
        return [self.tokens_to_ids.get(token, self.default_id) for token in tokens]
    def add_token(self, token):
        self.tokens_to_ids[token] = len(self)
        self.ids_to_tokens.append(token)

def build_vocab_from_tokens(tokens, maximum_size=0, minimum_frequency=1, special_tokens=()):
    return Vocab([*special_tokens, *tokens][: maximum_size or None])

for name in ("spacy", "fasttext", "ahocorasick", "pyonmttok"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["pyonmttok"].build_vocab_from_tokens = build_vocab_from_tokens

def attention(query, key, value, mask, dropout, is_causal):
    # The mask hides the later words too; torch refuses both in some of its implementations.
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, mask, dropout, is_causal=is_causal and mask is None
    )

if __name__ == "__main__":  # workers that read batches import this file too
    import onmt.train_single
    from onmt.bin.train import main
    from onmt.modules import multi_headed_attn

    multi_headed_attn.scaled_dot_product_attention = attention
    # It asks for the memory-efficient implementation in each call. Newer torch would prefer that of cuDNN,
    # which plans anew for each length.
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.sdp_kernel = lambda **_: contextlib.nullcontext()
    onmt.train_single.build_model_saver = lambda *_: None  # no checkpoint at the end
    main()
"""
VOCABULARY = 30000  # words of each side, with four symbols
SIZES = {
    "rnn": {
        "encoder_type": "brnn", "decoder_type": "rnn", "rnn_type": "GRU", "word_vec_size": 620,
        "hidden_size": 1000, "layers": 1, "global_attention": "mlp", "input_feed": 1, "dropout": [0.0],
        "batch_type": "sents",
    },
    "transformer": {
        "encoder_type": "transformer", "decoder_type": "transformer", "position_encoding": True,
        "word_vec_size": 512, "hidden_size": 512, "transformer_ff": 2048, "heads": 8, "layers": 6,
        "dropout": [0.1], "attention_dropout": [0.1], "self_attn_type": "scaled-dot-flash",
        "param_init": 0.0, "param_init_glorot": True, "label_smoothing": 0.1, "batch_type": "tokens",
        "batch_size_multiple": 8,
    },
}  # fmt: skip
SMALL = {
    "rnn": {"word_vec_size": 16, "hidden_size": 32},
    "transformer": {"word_vec_size": 32, "hidden_size": 32, "transformer_ff": 64, "heads": 2, "layers": 2},
}
REPORT = re.compile(r"Step +(\d+)/.*; bsz: *\d+/ *(\d+)/.*; *\d+/ *(\d+) tok/s;")


def configure(args: argparse.Namespace, folder: Path) -> None:
    """Write the program, vocabularies and configuration of a training.

    Batches are of sentences of similar length: every worker sorts its share of the text. No seed is set, as
    that would forbid cuDNN its faster sums.
    """
    text = args.folder.absolute()
    for side in ("src", "tgt"):
        files.write_text(folder / f"vocab.{side}", list(vocabulary(text, side))[: VOCABULARY - 4])
    paths = {f"path_{side}": str(text / f"train.{side}") for side in ("src", "tgt")}
    config = {
        "data": {"corpus_1": {**paths, "transforms": []}},
        "src_vocab": "vocab.src", "tgt_vocab": "vocab.tgt", "src_vocab_size": VOCABULARY,
        "tgt_vocab_size": VOCABULARY, "save_data": "data", "save_model": "model", "overwrite": True,
        "batch_size": args.batch, "num_workers": args.workers, "prefetch_factor": 32,
        "bucket_size": max(1, files.count_lines(text / "train.src") // max(1, args.workers)),
        "train_steps": args.updates, "valid_steps": 1 << 30, "save_checkpoint_steps": 0,
        "report_every": max(1, args.updates // 12), "optim": "adam", "learning_rate": 0.0002,
        "max_grad_norm": 1.0, **SIZES[args.model], **(SMALL[args.model] if args.small else {}),
        **({} if args.device == "cpu" else {"world_size": 1, "gpu_ranks": [0], "model_dtype": "fp16"}),
    }  # fmt: skip
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")


def run(folder: Path, seconds: float) -> tuple[str, str]:
    """Train within a time limit. Return the messages and what went wrong, empty if nothing did."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    with open(folder / "messages.txt", "w+", encoding="utf-8", errors="replace") as messages:
        process = subprocess.Popen(
            [sys.executable, "train.py", "-config", "config.yaml"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, paths)))},
            cwd=folder, stdout=messages, stderr=messages, start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(seconds)
            failure = f"exit status {status}" if status else ""
        except subprocess.TimeoutExpired:
            failure = f"stopped after {seconds:g} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with its workers
            process.wait()
        messages.seek(0)
        return messages.read(), failure


def speed(messages: str, skip: int) -> tuple[float, int, int]:
    """Target words a second in the reports after the first updates, and the first and the last update of
    these reports. ValueError if there are none.

    A report has the mean target words of an update and their rate since the report before.
    """
    rows = [tuple(map(int, row)) for row in REPORT.findall(messages)]
    kept = [(step, words, rate) for step, words, rate in rows if step > skip and words and rate]
    if not kept:
        raise ValueError("no report of its speed after the first updates")
    last_skipped = max((step for step, _, _ in rows if step <= skip), default=0)
    rate = sum(words for _, words, _ in kept) / sum(words / rate for _, words, rate in kept)
    return rate, last_skipped + 1, kept[-1][0]


def main() -> None:
    """Train and print the speed, or the last messages if that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="has train.src and train.tgt")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument(
        "--batch", type=int, required=True, help="sentences (rnn), tokens with padding (transformer)"
    )
    parser.add_argument("--updates", type=int, default=120, help="the first third is not measured")
    parser.add_argument("--device", choices=("cuda:0", "cpu"), default="cuda:0")
    parser.add_argument("--workers", type=int, default=4, help="processes that read batches")
    parser.add_argument("--seconds", type=float, default=180, help="time limit")
    parser.add_argument("--small", action="store_true", help="small sizes, for a trial")
    args = parser.parse_args()
    with TemporaryDirectory() as temporary:
        configure(args, Path(temporary))
        messages, failure = run(Path(temporary), args.seconds)
    try:
        if "cuda OOM" in messages:
            raise ValueError("batches were left out for lack of memory")
        if failure.startswith("exit"):
            raise ValueError("the training failed")
        rate, first, last = speed(messages, args.updates // 3)
    except ValueError as error:
        end = f"opennmt-py {args.model}: {'; '.join(filter(None, [str(error), failure]))}"
        raise SystemExit("\n".join([*messages.splitlines()[-15:], end])) from None
    details = (
        "with end symbols, without padding",
        f"updates {first} to {last}, {args.batch} {'sentences' if args.model == 'rnn' else 'tokens'} each",
        f"vocabularies {' '.join(re.findall('(?:src|tgt) vocab size = ([0-9]+)', messages))}",
        f"{args.device} {'fp32' if args.device == 'cpu' else 'fp16'}, {args.workers} workers",
        *([failure] if failure else []),
    )
    print(f"opennmt-py {args.model}: {rate:,.0f} target words/s ({'; '.join(details)})")


if __name__ == "__main__":
    main()
