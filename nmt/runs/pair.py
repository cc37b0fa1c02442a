"""What all trained models have, whether torch or CTranslate2 computes them: names, files, text pipelines and
vocabularies. Torch is not imported."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

from nmt.errors import CheckpointError, DataError
from nmt.runs import directory as run_directory
from nmt.text.lexicon import Lexicon
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import Vocab


class SavedModel:
    """A trained model with the weights that a run had after one of its updates."""

    directory: Path  # of the run
    step: int  # the weights are those after this many updates

    @property
    def name(self) -> str:
        """The name of the model in results."""
        return model_name(self.directory, self.step)

    def files(self) -> list[Path]:
        """Paths of the files that results depend on."""
        return run_directory.result_files(self.directory, self.step)


def model_name(directory: Path, step: int) -> str:
    """The name in results of a run's model with the weights after `step` updates."""
    return f"{directory.absolute().name}@{step}"  # absolute, since "." has no name


class LanguagePair(SavedModel):
    """A model of two languages with its text pipelines and vocabularies. Subclasses are dataclasses."""

    source: TextPipeline
    target: TextPipeline
    source_words: Vocab
    target_words: Vocab

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of the source and the target language; empty where unknown."""
        raise NotImplementedError

    @property
    def max_length(self) -> int:
        """Maximum length of training sentences, in units; longer ones were dropped (`data.max_length`)."""
        raise NotImplementedError

    @property
    def description(self) -> str:
        """A one-line description: name, type, languages, vocabulary and size."""
        raise NotImplementedError

    def for_text(self, tokenized: bool) -> Self:
        """This model for raw lines, or for lines that are tokenized like the training text."""
        if tokenized == self.source.tokenized:
            return self
        sides = {"source": self.source.for_text(tokenized), "target": self.target.for_text(tokenized)}
        return cast(Self, replace(cast(Any, self), **sides))

    def source_ids(self, line: str) -> list[int]:
        """Convert a source line to ids, without the end symbol."""
        return self.source_words.encode(self.source.units(line))

    def target_ids(self, line: str) -> list[int]:
        """Convert a target line to ids, without the end symbol."""
        return self.target_words.encode(self.target.units(line))


def describe(pair: LanguagePair, kind: str, size: str) -> str:
    """Describe a pair in one line. `kind`: type of the model; `size`: its number of parameters, formatted."""
    source, target = pair.languages
    return (
        f"{pair.name}: {kind}{f' from {source} to {target}' if source and target else ''}, "
        f"{len(pair.source_words):,} and {len(pair.target_words):,} units, {size}"
    )


def load_text(
    directory: Path, side: str, config: SideConfig, tags: Sequence[str], shared_vocabulary: bool
) -> tuple[TextPipeline, Vocab]:
    """Load the text pipeline and the vocabulary of a side, source or target. `tags`: tokens that a source
    sentence may begin with; they are added to the source vocabulary, and with `shared_vocabulary` to that of
    the target too. CheckpointError if a file is missing or damaged."""
    try:
        pipeline, vocab = TextPipeline.load(directory, side, config), Vocab.load(directory / f"{side}.vocab")
    except DataError as error:
        raise CheckpointError(f"{directory}: damaged run directory: {error}") from error
    if side == "source":
        pipeline.tags = tuple(tags)
    return pipeline, vocab.with_tags(tags if side == "source" or shared_vocabulary else ())


def load_lexicon(directory: Path) -> Lexicon | None:
    """The translations by which a run replaces unknown words; None if it has none. CheckpointError if they
    are damaged."""
    path = directory / run_directory.LEXICON
    try:
        return Lexicon.load(path) if path.exists() else None
    except DataError as error:
        raise CheckpointError(f"{directory}: damaged run directory: {error}") from error
