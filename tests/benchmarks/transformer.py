"""The presets transformer-small and small on the same generated text: target words a CPU second in training,
then sentences a CPU second at beam 5, with what was learned until then.

nmt-init DIR --sample-corpus
python tests/benchmarks/transformer.py DIR [--seconds 60] [--batch-size N | --batch-tokens N]
    [--presets transformer-small small]
"""

import timing  # noqa: F401  first: it sets the thread policy
import argparse
import tempfile
import time
from itertools import cycle
from pathlib import Path
from typing import cast

import torch

from nmt.io import files
from nmt.data.batches import Batch, Ids
from nmt.models.registry import AnyModel
from nmt.runs.text import load_side
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.training import build, config_file, loop
from nmt.training.job import TrainingJob


class Contestant:
    """A preset in training, and the CPU seconds and target words that it has had."""

    def __init__(self, preset: str, text: Path, folder: Path, batch_size: int, batch_tokens: int) -> None:
        sides = {
            f"{part}_{side}": f"{text}/{part}.{language}"
            for part in ("train", "dev")
            for side, language in (("source", "en"), ("target", "fr"))
        }
        training: dict[str, object] = {
            "bleu_tokenizer": "none",
            "batch_tokens": batch_tokens,
            **({"batch_size": batch_size} if batch_size else {}),
        }
        content = {"run": f"{folder}/{preset}", "data": sides, "training": training}
        config = config_file.from_mapping(content, preset)
        self.job = TrainingJob(config)
        build.set_up_translator(self.job)
        self.name, self.config, self.seconds, self.words = preset, config, 0.0, 0
        self.model = cast(AnyModel, self.job.model)
        self.batches = (batch for epoch in cycle(range(10**6)) for batch in self.job.stream.batches(epoch))

    def train(self, seconds: float) -> None:
        """Updates for so many CPU seconds."""
        self.model.train()
        end = time.process_time() + seconds
        while (began := time.process_time()) < end:
            batch = next(self.batches)
            assert isinstance(batch, Batch)
            loop.update(self.job, [batch])
            self.job.progress.step += 1
            self.seconds += time.process_time() - began
            self.words += batch.target_tokens
        self.model.eval()

    def sources(self, lines: list[str]) -> list[Ids]:
        """Lines as ids."""
        text, vocab = load_side(Path(self.config.run), "source", self.config.data)
        return [vocab.encode(text.units(line)) for line in lines]


def translate(model: AnyModel, sources: list[Ids], beam: int) -> float:
    """CPU seconds for translations as long as their sources: what is learned in a minute knows no lengths."""
    began = time.process_time()
    search(model, sources, BeamConfig(beam, min_length_factor=1.0, max_length_factor=1.2))
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "text", type=Path, metavar="DIR", help="folder of train.en, train.fr, dev.* and test.en"
    )
    parser.add_argument("--seconds", type=float, default=60, help="CPU seconds of training for each")
    parser.add_argument("--batch-size", type=int, default=0, help="sentences; 0: those of the preset")
    parser.add_argument("--batch-tokens", type=int, default=0, help="units of a batch; 0: by sentences")
    parser.add_argument("--lines", type=int, default=300, help="sentences to translate")
    parser.add_argument("--presets", nargs="*", default=["transformer-small", "small"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_of_them = [
            Contestant(preset, args.text, folder, args.batch_size, args.batch_tokens)
            for preset in args.presets
        ]
        for _ in range(10):  # in turns, so that a busy machine does not decide
            for one in all_of_them:
                one.train(args.seconds / 10)
        lines = list(files.read_lines(args.text / "test.en"))[: args.lines]
        for one in all_of_them:
            size = sum(parameter.numel() for parameter in one.model.parameters())
            seconds = translate(one.model, one.sources(lines), 5)
            print(f"{one.name}: {size:,} parameters, {one.words / one.job.progress.step:,.0f} units a batch")
            print(f"  training: {one.words / one.seconds:,.0f} target units per CPU second")
            print(f"  beam 5: {len(lines) / seconds:.1f} sentences a CPU second", flush=True)


if __name__ == "__main__":
    main()
