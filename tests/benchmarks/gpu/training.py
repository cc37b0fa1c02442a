"""Training on a GPU: target units a second, the share of the device's peak, where the time goes, and a whole
training of Multi30k."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, cast

import torch
from torch import nn

from nmt.data.batches import ALL_BATCHES, Batch, BatchStream, Share
from nmt.training import build, config_file, loop
from nmt.training.job import TrainingJob
from nmt.training.protocols import AnyBatch, Stream
from nmt.training.state import open_logs
from nmt.training.validation import DevScore, bleu_tokenizer

from .figures import Setting
from .text import LONGEST, write_text

WORDS, PAIRS, NEVER = 30_000, 16_000, 10**9
WARM_UP, FEWEST, PROFILED, SHOWN = 10, 5, 10, 15  # updates; kernels to show
GOAL = 59.0  # BLEU
RNNSEARCH = {
    "type": "rnn", "encoder": "birnn", "embedding": 620, "hidden": 1000, "attention": 1000, "maxout": 500,
    "bias": True, "init": "uniform", "init_scale": 0.08,
}  # fmt: skip  # Bahdanau et al. 2015, as in nmt/presets/large.yaml, without dropout
TRANSFORMER = {
    "type": "transformer", "encoder_layers": 6, "decoder_layers": 6, "embedding": 512, "feed_forward": 2048,
    "heads": 8, "tied": "target", "dropout": 0.1,
}  # fmt: skip  # the base model of Vaswani et al. 2017
# The medium LSTM of Zaremba et al. 2014, and the CSLM of Schwenk 2012 with a full softmax.
LANGUAGE_MODELS: dict[str, dict[str, object]] = {
    "lstm running text": {
        "type": "recurrent", "embedding": 650, "hidden": 650, "depth": 2, "dropout": 0.5, "carry": True,
    },
    "lstm": {"type": "recurrent", "embedding": 650, "hidden": 650, "depth": 2, "dropout": 0.5},
    "transformer lm": {"type": "transformer", "embedding": 512, "feed_forward": 2048, "heads": 8, "depth": 6},
    "cslm": {"type": "cslm", "embedding": 512, "layers": [1536, 1024], "init": "glorot"},
}  # fmt: skip
SMALL_LM: dict[str, dict[str, object]] = {
    "recurrent": {"embedding": 16, "hidden": 16},
    "transformer": {"embedding": 16, "feed_forward": 16, "heads": 2, "depth": 1},
    "cslm": {"embedding": 16, "layers": [24, 16]},
}
SMALL: dict[str, dict[str, object]] = {
    "rnn": {"embedding": 32, "hidden": 48, "attention": 48, "maxout": 24},
    "transformer": {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "embedding": 32,
        "feed_forward": 64,
        "heads": 4,
    },
}


class CountedStream:
    """The batches of a stream, and those that were taken from it."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.taken: list[AnyBatch] = []

    def count(self, epoch: int) -> int:
        return self.stream.count(epoch)

    def batches(self, epoch: int, start: int = 0, share: Share = ALL_BATCHES) -> Iterator[AnyBatch]:
        for batch in self.stream.batches(epoch, start, share):
            self.taken.append(batch)
            yield batch


def multiplications(model: nn.Module, batch: Batch) -> float:
    """Multiplications of the matrix products of a forward pass: each matrix once for each unit that it reads,
    and attention for each pair of units. Padding and what is computed twice do not count."""
    source, target, total = len(batch.source.ids), len(batch.target.ids), 0.0
    across = float((batch.source.lengths[batch.source.order.argsort()].double()
                    * batch.target.lengths[batch.target.order.argsort()]).sum())  # fmt: skip
    own = [float((side.lengths.double() ** 2).sum()) for side in (batch.source, batch.target)]
    for name, matrix in model.named_parameters():
        if matrix.dim() < 2:
            continue
        size, width = matrix.numel(), matrix.shape[-1]
        if name.endswith("embedding.weight"):
            total += size * target if name.startswith("decoder") and is_tied(model) else 0
        elif name == "decoder.initial":
            total += size * batch.sentences
        elif name == "decoder.attention.keys":
            total += size * source + width * across  # and the weighted sums of its inputs
        elif name == "decoder.attention.energy":
            total += size * across
        elif name.endswith("source.pairs.weight"):
            total += size * source + 2 * width * across
        else:
            encodes = name.startswith("encoder")
            total += size * (source if encodes else target)
            if name.endswith(".attention.inputs.weight"):
                total += 2 * width * own[not encodes]
    return total


def is_tied(model: nn.Module) -> bool:
    """Whether the output layer multiplies by the target embeddings."""
    return not any(name.endswith("output.words") for name, _ in model.named_parameters())


class Trial:
    """A training job on generated text, whose updates are timed by the training loop itself."""

    def __init__(
        self, setting: Setting, name: str, model: dict[str, object], language_model: bool = False
    ) -> None:
        self.setting = setting
        words, pairs = (500, 400) if setting.small else (WORDS, PAIRS)
        text = setting.folder / f"text{words}"
        if not (text / "words.vocab").exists():
            write_text(text, pairs, words, 1)
        side = {"language": "en", "tokenize": False, "normalize": False, "vocab_file": f"{text}/words.vocab"}
        if setting.small:
            model = model | (SMALL_LM if language_model else SMALL)[str(model["type"])]
        texts = {"train_source": f"{text}/train.src", "train_target": f"{text}/train.tgt"}
        if language_model:
            texts = {"train_text": f"{text}/train.tgt"}
        content: dict[str, object] = {
            "run": f"{setting.folder}/{name}",
            "device": setting.device,
            "data": {
                **texts, "cache": f"{text}/cache-{name}" if language_model else f"{text}/cache",
                "bpe_merges": 0, "max_length": LONGEST + 1, "target": side,
                **({} if language_model else {"source": side}),
            },
            "lm" if language_model else "model": model,
            "training": {
                "optimizer": "adam", "learning_rate": 0.0001, "cost": "word", "label_smoothing": 0.1,
                "bleu_tokenizer": "none", "max_steps": NEVER, "validate_every": NEVER, "patience": 0,
                "tensorboard": False,
            },
        }  # fmt: skip
        self.job = TrainingJob(config_file.from_mapping(content), setting.device)
        (build.set_up_language_model if language_model else build.set_up_translator)(self.job)
        self.stream = CountedStream(self.job.stream)

    def use(self, precision: str, sentences: int, tokens: int, graphs: bool = True) -> None:
        """Go on with other batches and another precision, with or without CUDA graphs. `tokens`: instead of
        sentences, unless 0."""
        config = self.job.config
        if self.setting.small:
            sentences, tokens = sentences // 8, tokens // 16
        config.precision = precision
        config.training.batch_size, config.training.batch_tokens = max(1, sentences), tokens
        stream = self.stream.stream
        if isinstance(stream, BatchStream):
            stream = BatchStream(stream.corpus, max(1, sentences), 20, 1, tokens=tokens)
        self.stream = CountedStream(stream)
        self.job.stream, self.job.progress.batch, self.job.progress.epoch = self.stream, 0, 0
        self.job.graphs = self.job.make_graphs() if graphs else None

    def run(self, updates: int, seconds: float = 0.0, warm: float = 0.0) -> tuple[int, int, float]:
        """Run `updates` that are not measured, for `warm` seconds at least, then more for `seconds`. Returns
        the number of the first one that was measured, the number of all, and the seconds between."""
        done, first, began, ended, started = 0, 0, 0.0, 0.0, time.perf_counter()

        def stop() -> bool:
            nonlocal done, first, began, ended
            done += 1
            if not first and done >= updates and time.perf_counter() - started >= warm:
                first, began = done, self.setting.now()
                ended = began
            enough = first and time.perf_counter() - began >= seconds
            if enough and (not seconds or done >= first + FEWEST):
                ended = self.setting.now()
                return True
            return False

        self.job.stop = stop
        logs = open_logs(self.job)
        try:
            loop.run_updates(self.job, logs)
        finally:
            logs.close()
        return first, done, ended - began

    def measure(self, name: str, what: str, peak: str = "") -> None:
        """Target units a second and, of translators, the share of the peak, the figure of that name."""
        model = cast(nn.Module, self.job.model)
        warm = 2.5 * self.setting.seconds if self.job.graphs else 0.0  # until most shapes have a graph
        first, last, seconds = self.run(3 if self.setting.small else WARM_UP, self.setting.seconds, warm)
        batches = self.stream.taken[first:last]
        units = sum(batch.target_tokens for batch in batches)
        what = f"{what}; {units / len(batches):,.0f} units a batch, {len(batches)} updates"
        self.setting.figure(f"{name} units/s", units / seconds, "target units/s", what)
        self.setting.figure(f"{name} ms/update", 1000 * seconds / len(batches), "ms", what)
        if peak:
            flops = 6 * sum(multiplications(model, batch) for batch in batches if isinstance(batch, Batch))
            speed = flops / seconds / 1e12
            self.setting.figure(f"{name} TFLOP/s", speed, "TFLOP/s", "products only, x3, 2 each")
            if most := self.setting.figures.get(peak):
                self.setting.figure(f"{name} share", 100 * speed / most, "%", f"of {peak}")
        if self.job.graphs:
            self.setting.figure(f"{name} graphs", len(self.job.graphs.graphs), "shapes")
        if self.setting.on_gpu:
            memory = torch.cuda.max_memory_allocated(self.setting.device) / 2**30
            self.setting.figure(f"{name} memory", memory, "GiB", "peak")
            torch.cuda.reset_peak_memory_stats(self.setting.device)


def rnnsearch(setting: Setting) -> None:
    """RNNsearch of 1,000 units, 30,000 words: batches of 80 and 256 sentences, bf16 and fp32, with and
    without CUDA graphs."""
    trial = Trial(setting, "rnnsearch", RNNSEARCH)
    for sentences, precision, graphs in (
        (80, "bf16", True), (80, "bf16", False), (256, "bf16", True), (80, "fp32", True),
    ):  # fmt: skip
        name = f"rnnsearch {precision} B{sentences}{'' if graphs else ' eager'}"
        if graphs or setting.on_gpu:
            with setting.attempt(name, 4 * setting.seconds + 30):
                trial.use(precision, sentences, 0, graphs)
                trial.measure(name, f"{sentences} sentences, Adam", f"peak {precision}")


def transformer(setting: Setting) -> None:
    """Transformer base, 30,000 words: 4,096 and 16,384 units a batch, bf16 and fp32, with and without CUDA
    graphs, and with dropout of attention."""
    for share, settings in (
        (0.0, ((4096, "bf16", True), (16384, "bf16", True))),
        (0.1, ((4096, "bf16", True), (4096, "bf16", False), (4096, "fp32", True))),
    ):
        trial = Trial(setting, f"transformer{share}", TRANSFORMER | {"attention_dropout": share})
        for tokens, precision, graphs in settings:
            name = f"transformer {precision} {tokens} drop {share}{'' if graphs else ' eager'}"
            if graphs or setting.on_gpu:
                with setting.attempt(name, 4 * setting.seconds + 30):
                    trial.use(precision, 64, tokens, graphs)
                    trial.measure(name, f"attention dropout {share}, Adam", f"peak {precision}")
        del trial


def language_models(setting: Setting) -> None:
    """Language models over 30,000 words: 64 sentences a batch, or 64 tracks of 35 words, with and without
    CUDA graphs."""
    for name, model in LANGUAGE_MODELS.items():
        trial = Trial(setting, name.replace(" ", "-"), model, language_model=True)
        for precision, graphs in (("bf16", True), ("bf16", False), ("fp32", True)):
            shown = f"{name} {precision}{'' if graphs else ' eager'}"
            if graphs or setting.on_gpu:
                with setting.attempt(shown, 4 * setting.seconds + 30):
                    trial.use(precision, 64, 0, graphs)
                    trial.measure(shown, "64 sentences or tracks, Adam")
        del trial


# ---- where the time goes -----------------------------------------------------------------------------------


def profile(setting: Setting, model: str, precision: str = "fp32") -> None:
    """Updates under torch's profiler: the kernels with the most time, launches and waits of an update."""
    trial = Trial(setting, f"profile-{model}-{precision}", RNNSEARCH if model == "rnnsearch" else TRANSFORMER)
    trial.use(precision, 80, 4096 if model == "transformer" else 0, graphs=False)
    trial.run(3 if setting.small else WARM_UP)
    began = setting.now()
    trial.run(PROFILED)
    plain = setting.now() - began
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if setting.on_gpu:
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=kinds) as recorded:
        trial.run(PROFILED)
        setting.wait()
    events = recorded.key_averages()
    what = f"{model} {precision}"
    kernels = sorted(filter(on_device if setting.on_gpu else bool, events), key=spent, reverse=True)
    total = sum(map(spent, kernels))
    for event in kernels[:SHOWN]:
        print(
            f"    {spent(event) / PROFILED / 1000:9.3f} ms {spent(event) / total:6.1%} "
            f"{event.count / PROFILED:9.1f} calls  {event.key[:100]}"
        )
    setting.figure(f"profile {what} device ms", total / PROFILED / 1000, "ms/update", "kernels together")
    setting.figure(f"profile {what} wall ms", 1000 * plain / PROFILED, "ms/update", "without the profiler")
    for title, parts in (
        ("launches", ("cudaLaunchKernel", "cuLaunchKernel")),
        ("synchronizations", ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")),
        ("copies", ("cudaMemcpy",)),
    ):
        calls = sum(event.count for event in events if event.key.startswith(parts))
        setting.figure(f"profile {what} {title}", calls / PROFILED, "an update", ", ".join(parts))


class ProfileEntry(Protocol):
    """What torch's profiler says of all calls of one name."""

    key: str
    count: int
    device_type: object
    self_device_time_total: float
    self_cpu_time_total: float


def on_device(event: ProfileEntry) -> bool:
    """Whether an entry of the profile is a kernel or a copy of the GPU."""
    return str(event.device_type).endswith("CUDA") and not getattr(event, "is_user_annotation", False)


def spent(event: ProfileEntry) -> float:
    """Microseconds of an entry of the profile: on the GPU, or of the CPU where there was none."""
    return float(event.self_device_time_total or event.self_cpu_time_total)


# ---- a whole training --------------------------------------------------------------------------------------


def multi30k(folder: Path) -> tuple[dict[str, object], str]:
    """Section `data` for the text of a folder, and what it is: the tokenized, lower-cased text that published
    figures are of, as in recipes/multi30k/attention.yaml, or else the raw text."""
    for tokenized in (folder, folder / "tok", folder / "multi30k" / "tok"):
        if (tokenized / "train.lc.norm.tok.en").exists():
            side = {"tokenize": False, "normalize": False, "case": "keep", "min_count": 2}
            names = {"train": "train.lc.norm.tok", "dev": "val.lc.norm.tok"}
            plain: dict[str, object] = {"bpe_merges": 0, "source": side, "target": side}
            return plain | paths(tokenized, names), "tokenized, whole words"
    raw = folder if (folder / "train.en").exists() else folder / "multi30k"
    return paths(raw, {"train": "train", "dev": "val"}), "raw, subwords"


def paths(folder: Path, names: dict[str, str]) -> dict[str, object]:
    return {
        f"{part}_{side}": f"{folder}/{name}.{language}"
        for part, name in names.items()
        for side, language in (("source", "en"), ("target", "fr"))
    }


def recipe(setting: Setting) -> None:
    """Preset `small` on Multi30k, English to French, in 3 minutes, with half as many epochs again and more
    dropout, which a GPU has time for: BLEU of each validation."""
    if not setting.data:
        print("  skipped: needs --data DIR")
        return
    data, text = multi30k(Path(setting.data))
    minutes = 0.2 if setting.small else setting.minutes
    content: dict[str, object] = {
        "run": f"{setting.folder}/recipe",
        "device": setting.device,
        "data": data,
        "model": {"dropout": 0.4},
        "training": {
            "max_epochs": 24, "patience": 0, "max_minutes": minutes, "tensorboard": False, "keep": 1,
        },
    }  # fmt: skip
    if setting.small:
        content["model"] = {"embedding": 16, "hidden": 16, "encoder_hidden": 8, "attention": 16, "maxout": 8}
        content["training"] = {"max_steps": 10, "max_minutes": minutes, "validate_every": 5, "dev_beam": 1}
    began = time.perf_counter()
    config = config_file.from_mapping(content, "small")
    config.training.bleu_tokenizer = bleu_tokenizer(config.training.bleu_tokenizer, config.data)
    job = TrainingJob(config, setting.device)
    build.set_up_translator(job)
    setting.figure("recipe preparing", time.perf_counter() - began, "s", text)
    validate, started, passed = job.validate, setting.now(), 0.0
    assert validate is not None

    def shown() -> DevScore:
        nonlocal passed
        at = setting.now() - started
        score = validate()
        took = setting.now() - started - at
        what = f"update {job.progress.step}, {text}, {at:.0f} s of training, {took:.1f} s of validation"
        setting.figure("recipe BLEU", score.bleu, "BLEU", what)
        if score.bleu >= GOAL and not passed:
            passed = at
            setting.figure("recipe goal", at, "s", f"BLEU {GOAL:g} passed")
        return score

    job.validate = shown
    loop.train(job)
    setting.figure("recipe updates", job.progress.step, "updates", f"{setting.now() - started:.0f} s in all")
