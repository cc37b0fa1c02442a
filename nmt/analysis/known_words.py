"""Which words are known: those of a vocabulary (--vocabulary) or of the training text (--train)."""

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from nmt.analysis.systems import TestSet
from nmt.analysis.trained_runs import has_subwords
from nmt.cli.arguments import InputPath, integer
from nmt.cli.options import Parser
from nmt.errors import ConfigError
from nmt.io import files
from nmt.runs import directory as run_directory
from nmt.text.vocab import HEADER, Vocab

log = logging.getLogger(__name__)

TrainingCounts = Mapping[str, int]  # how often each word occurs in the training text


# ---- vocabularies ------------------------------------------------------------------------------------------


def add_vocabularies(parser: Parser, required: bool) -> None:
    parser.add_argument(
        "--vocabulary",
        type=InputPath,
        nargs="+",
        required=required,
        default=None,
        metavar="RUN_OR_FILE",
        help="a run directory, or two files of nmt-vocab: source, target",
    )


def read_vocabularies(paths: Sequence[str]) -> tuple[Vocab, Vocab]:
    """Load the vocabularies of source and target from the paths of --vocabulary.

    ConfigError for other paths, and for subword vocabularies, to which no word is unknown.
    """
    if len(paths) == 2:
        return Vocab.load(paths[0]), Vocab.load(paths[1])
    run = Path(paths[0])
    if len(paths) > 2 or not run.is_dir():
        raise ConfigError(
            "--vocabulary: expected a run directory, or a source and a target vocabulary, found "
            f"{' '.join(paths)}"
        )
    run_directory.verify(run)
    if has_subwords(run):
        raise ConfigError(
            f"{run}: its vocabularies hold subword units, which are never unknown; take --train for words "
            "unseen in training, by-segmented for words of several units, or word vocabularies of nmt-vocab"
        )
    return Vocab.load(run / "source.vocab"), Vocab.load(run / "target.vocab")


def check_vocabularies(paths: Sequence[str], vocabs: tuple[Vocab, Vocab], test: TestSet) -> None:
    """Check that vocabularies and test set are tokenized and cased alike, see `check_coverage`."""
    source, target = vocabs[0].ids, vocabs[1].ids
    names = paths if len(paths) == 2 else [f"{paths[0]}/{side}.vocab" for side in ("source", "target")]
    check_coverage(map(files.split_words, test.sources), source, target, names[0])
    check_coverage(map(files.split_words, test.references[0]), target, source, names[1])


# ---- training text -----------------------------------------------------------------------------------------


def add_training(parser: Parser, required: bool) -> None:
    parser.add_argument(
        "--train",
        type=InputPath,
        nargs=2,
        required=required,
        default=None,
        metavar="FILE",
        help="the training text, source and target, in the form of the test set; or files of nmt-vocab",
    )
    parser.add_argument(
        "--rare",
        type=integer(0),
        default=0,
        metavar="N",
        help="words are rare that the training text has at most N times; 0: never",
    )


def read_training(paths: Sequence[str], test: TestSet) -> tuple[TrainingCounts, TrainingCounts]:
    """Count the words of the training text, source and target, and check that they match the test set."""
    source, target = (read_counts(path, test) for path in paths)
    check_coverage(test.source_words, source, target, paths[0])
    check_coverage(test.reference_words[0], target, source, paths[1])
    return source, target


def read_target_counts(path: str, test: TestSet) -> TrainingCounts:
    """Count the words of the training text's target side, and check that they match the references."""
    counts = read_counts(path, test)
    check_coverage(test.reference_words[0], counts, (), path)
    return counts


def read_counts(path: str | Path, test: TestSet) -> TrainingCounts:
    """Count the words of a text, split as BLEU splits those of the test set, or load a file of nmt-vocab."""
    if next(iter(files.preview(path)), "").startswith(HEADER):
        return match_case(Vocab.load(path).counts, test)
    return Counter(word for line in files.read_lines(path) for word in test.split(line))


def match_case(counts: TrainingCounts, test: TestSet) -> TrainingCounts:
    """Merge words that differ in case only if the test set is scored without case."""
    if not test.lowercase:
        return counts
    lowered: Counter[str] = Counter()
    for word, count in counts.items():
        lowered[word.lower()] += count
    return lowered


def rare_name(most: int) -> str:
    """The name of the words that the training text has at most `most` times."""
    return f"seen at most {most} times" if most else "unseen"


# ---- coverage ----------------------------------------------------------------------------------------------
# Counting the words of a text in a list of words means little unless both are tokenized and cased alike.


MIN_RUNNING_WORDS = 20  # fewer are too few to judge by
SUSPICIOUS_SHARE = 0.02  # missing share of running words above which we look for the reason
MAX_MISSING_SHARE = 0.5  # above it, and with a likely reason, the words are refused
SUBWORD_SHARE = 0.05  # share of entries marked as subword units

WordCounts = Mapping[str, int]  # words of a text and how often each occurs


def word_parts(word: str) -> list[str]:
    """Split punctuation off both ends of a word."""
    return re.findall(r"^\W+|\w(?:.*\w)?|\W+$", word) or [word]


def missing_words(text: WordCounts, vocabulary: Collection[str], split: Callable[[str], list[str]]) -> float:
    """The number of running words outside the vocabulary after `split`; a part of a word counts partly."""
    return sum(
        count * sum(part not in vocabulary for part in parts) / len(parts)
        for word, count in text.items()
        if (parts := split(word))
    )


def mismatch_reasons(
    text: WordCounts, vocabulary: Collection[str], other_side: Collection[str]
) -> Iterator[tuple[str, float]]:
    """Possible reasons of missing words, each with the running words still missing once it is removed."""
    reasons: list[tuple[str, Collection[str], Callable[[str], list[str]]]] = [
        (
            "its words are lower-cased and the text is not: lower-case the text",
            vocabulary,
            lambda word: [word.lower()],
        ),
        (
            "the text is lower-cased and its words are not: give the text as it was",
            {word.lower() for word in vocabulary},
            lambda word: [word],
        ),
        (
            "the text is not tokenized as its words are: give it as nmt-tokenize writes it",
            vocabulary,
            word_parts,
        ),
        (
            "the text is neither tokenized nor lower-cased as its words are: see nmt-tokenize --lower",
            vocabulary,
            lambda word: word_parts(word.lower()),
        ),
        ("source and target are exchanged", other_side, lambda word: [word]),
    ]
    for reason, words, split in reasons:
        yield reason, missing_words(text, words, split)


def likely_mismatch(
    text: WordCounts, vocabulary: Collection[str], other_side: Collection[str]
) -> tuple[float, str]:
    """The share of running words that are missing, and the likely reason ("": none).

    Likely is the first reason that explains nearly as many of the words as the best one does, which has to
    explain half of them.
    """
    total, missing = sum(text.values()), missing_words(text, vocabulary, lambda word: [word])
    if missing < SUSPICIOUS_SHARE * total or not missing:
        return missing / total if total else 0.0, ""
    reasons = list(mismatch_reasons(text, vocabulary, other_side))
    fewest = min(remaining for _, remaining in reasons)
    if fewest > missing / 2:
        return missing / total, ""
    threshold = fewest + (missing - fewest) / 10
    return missing / total, next(reason for reason, remaining in reasons if remaining <= threshold)


def is_subwords(words: Collection[str]) -> bool:
    """Are these units of BPE (`lower@@`) or SentencePiece (`\u2581case`)?"""
    marked = sum(word.endswith("@@") or word.startswith("\u2581") for word in words)
    return marked > SUBWORD_SHARE * len(words)


def check_coverage(
    lines: Iterable[list[str]], vocabulary: Collection[str], other_side: Collection[str], name: str
) -> None:
    """Check that the words of `lines` are tokenized and cased like `vocabulary`, called `name` in messages.

    ConfigError for subword units, and if most words of the text are missing for a reason that we recognize;
    a warning if fewer are, or for no such reason. `other_side`: the vocabulary words of the other language.
    """
    if is_subwords(vocabulary):
        raise ConfigError(
            f"{name}: holds subword units, but the text has words; make word vocabularies with nmt-vocab, or "
            "take by-rare or by-segmented"
        )
    text = Counter(word for words in lines for word in words)
    if text.total() < MIN_RUNNING_WORDS:
        return
    share, reason = likely_mismatch(text, vocabulary, other_side)
    problem = f"{name}: {share:.0%} of the running words of the text are not in it"
    if reason and share > MAX_MISSING_SHARE:
        raise ConfigError(f"{problem}; probably {reason}")
    if reason:
        log.warning("%s; probably %s", problem, reason)
    elif share > MAX_MISSING_SHARE:
        log.warning("%s: are both of one language and form?", problem)
