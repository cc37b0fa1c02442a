"""Settings and checks of a training corpus; nmt/data/binarized.py stores it as ids.

There are two kinds: parallel text, and the unique phrase pairs of a Moses phrase table, which are sampled
uniformly whatever their counts (Cho et al. 2014a, section 3.1; van Merriënboer 2018, section 4.3.1).
"""

import hashlib
import re
import stat
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nmt.config import settings
from nmt.config.settings import number, setting
from nmt.errors import ConfigError, DataError
from nmt.formats import phrase_table
from nmt.io import files
from nmt.io.manifest import digest64
from nmt.io.numbers import shown
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import escape
from nmt.text.vocab import SPECIALS, Vocab

# ---- several corpora ---------------------------------------------------------------------------------------
# Settings of several training corpora, and how often an epoch contains the pairs of each.
#
# An epoch has as many pairs as all corpora together. The share of corpus k, which has n_k pairs, is
# proportional to (weight_k n_k) ** (1 / temperature): with weights 1, temperature 1 is plain concatenation,
# and a high temperature makes all corpora count alike (Arivazhagan et al. 2019, section 4.2; Aharoni et al.
# 2019).

TAG_PATTERN = re.compile(r"<[^\s<>]+>|>>[^\s<>]+<<")
BYTE_UNIT = re.compile(r"<0x[0-9A-F]{2}>")  # a unit of SentencePiece
SHARE_TOLERANCE = 1e-6  # shares are decimal fractions


@dataclass
class FilterConfig:
    """Which pairs of a corpus are used. Lengths are counted as in nmt-clean: words between blanks; in scripts
    without blanks, two Chinese or Japanese characters, or four letters of Thai, Lao, Khmer or Burmese, count
    as a word. Pairs with an empty side are dropped by any filter."""

    min_length: int = number(0, least=0, help="minimum number of words per side; 0: any")
    max_length: int = number(0, least=0, help="maximum number of words per side; 0: any")
    max_ratio: float = number(0.0, least=0, help="maximum ratio of the longer to the shorter side; 0: any")
    drop_copies: bool = setting(False, help="drop pairs whose target equals their source")
    drop_duplicates: bool = setting(False, help="drop pairs that repeat an earlier pair of this corpus")

    @property
    def active(self) -> bool:
        return self != FilterConfig()


@dataclass
class CorpusConfig:
    """One of several training corpora."""

    name: str = setting("", help="name of the corpus in messages; empty: the name of its source file")
    source: str = setting("", help="parallel text, line by line")
    target: str = setting("", help="its translation")
    alignment: str = setting(
        "", help="its word alignment, for training.guided_alignment; a corpus without it is not guided"
    )
    tag: str = setting(
        "",
        help="a token put before each source sentence, such as <bt>, <2fr> or <med>; it is a unit of its "
        "own, and lines to translate may begin with it",
    )
    weight: float = number(
        1.0,
        above=0,
        most=1e9,
        help="how much a pair of this corpus counts: at temperature 1, with weight 2 it occurs twice as "
        "often as a pair of a corpus with weight 1",
    )
    share: float = number(
        0.0,
        least=0,
        most=1,
        help="instead of weights and temperature: the share of an epoch's pairs that come from this corpus; "
        "the shares of all corpora must sum to 1",
    )
    filters: FilterConfig = field(default_factory=FilterConfig)

    @property
    def title(self) -> str:
        """Name of the corpus in messages: by default that of its source file."""
        return self.name or Path(self.source).name


def corpus_tags(corpora: Sequence[CorpusConfig]) -> tuple[str, ...]:
    """Distinct tags of corpora, in their order."""
    return tuple(dict.fromkeys(corpus.tag for corpus in corpora if corpus.tag))


def check_corpora(corpora: Sequence[CorpusConfig], temperature: float) -> None:
    """ConfigError if `data.corpora` and `data.temperature` contradict each other. Ranges are not checked."""
    if temperature != 1 and not corpora:
        raise ConfigError("data.temperature: there is one corpus only; list several in data.corpora")
    for index, corpus in enumerate(corpora):
        key = f"data.corpora[{index}]"
        for side in ("source", "target"):
            if not getattr(corpus, side):
                raise ConfigError(f"{key}.{side}: missing; each corpus has a source and a target")
        check_tag(corpus.tag, f"{key}.tag")
        limits = corpus.filters
        if 0 < limits.max_length < limits.min_length:
            raise ConfigError(
                f"{key}.filters.max_length: {limits.max_length} is less than min_length {limits.min_length}; "
                "raise the one, or lower the other"
            )
        if 0 < limits.max_ratio < 1:
            raise ConfigError(
                f"{key}.filters.max_ratio: {limits.max_ratio:g} is too small, expected 1 or more, or 0"
            )
    check_shares(corpora, temperature)


def check_tag(tag: str, key: str) -> None:
    """ConfigError for a tag that is not of the form <name>, or is a reserved symbol; an empty one passes.
    `key`: of the setting, for the message."""
    if tag and not (TAG_PATTERN.fullmatch(tag) and tag.isprintable()):
        raise ConfigError(
            f"{key}: {shown(tag)} is not a tag, expected a name between < and >, such as <bt>, "
            "or between >> and <<, such as >>fra<<"
        )
    if tag in SPECIALS or BYTE_UNIT.fullmatch(tag):
        raise ConfigError(f"{key}: {tag} means something else in vocabularies; choose another name")


def check_shares(corpora: Sequence[CorpusConfig], temperature: float) -> None:
    """ConfigError for shares that do not sum to 1, or that are combined with weights."""
    shares = [corpus.share for corpus in corpora]
    if not any(shares):
        return
    for index, corpus in enumerate(corpora):
        if not corpus.share:
            raise ConfigError(
                f"data.corpora[{index}].share: missing or 0; give each corpus a share above 0, or none"
            )
        if corpus.weight != 1:
            raise ConfigError(
                f"data.corpora[{index}].weight: weights and shares exclude each other; leave out one of them"
            )
    if temperature != 1:
        raise ConfigError("data.temperature: has no effect with shares; leave out one of them")
    if abs(sum(shares) - 1) > SHARE_TOLERANCE:
        listed = " + ".join(f"{share:g}" for share in shares)
        raise ConfigError(f"data.corpora: the shares {listed} sum to {sum(shares):g}, expected 1")


def check_corpora_text(corpora: Sequence[CorpusConfig], thorough: bool) -> None:
    """DataError as from `check_text_file`. `thorough` also reads all text once, to report bad text, files of
    unequal length, and lines that already have a tag."""
    tags = corpus_tags(corpora)
    for corpus in corpora:
        for path in (corpus.source, corpus.target):
            check_text_file(path)
        if thorough:
            files.check_parallel(corpus.source, corpus.target)
            for path in (corpus.source, corpus.target):
                check_untagged(path, tags)


def check_untagged(path: str, tags: Sequence[str]) -> None:
    """DataError for the first line that contains one of the tags, plain or with Moses' escapes."""
    forms = {form.encode(): tag for tag in tags for form in (tag, escape(tag))}
    for row, line in enumerate(files.read_byte_lines(path) if tags else (), 1):
        if b"<" in line or b"&lt;" in line:
            for form, tag in forms.items():
                if form in line:
                    raise DataError(
                        f"{path}:{row}: the text has {tag}, which is a tag in data.corpora; "
                        "remove it from the text, or rename the tag"
                    )


def epoch_counts(sizes: Sequence[int], corpora: Sequence[CorpusConfig], temperature: float) -> list[int]:
    """Number of pairs per epoch from each corpus: their shares of the sum of `sizes`, rounded by largest
    remainder. `sizes`: number of pairs of each corpus, at least 1; `temperature`: data.temperature."""
    total = sum(sizes)
    wanted = [corpus.share for corpus in corpora]
    if not any(wanted):
        sized = [corpus.weight * size for corpus, size in zip(corpora, sizes, strict=True)]
        wanted = [(value / max(sized)) ** (1 / temperature) for value in sized]
    exact = [total * share / sum(wanted) for share in wanted]
    counts = [int(value) for value in exact]
    by_remainder = sorted(range(len(counts)), key=lambda index: (counts[index] - exact[index], index))
    for index in by_remainder[: total - sum(counts)]:
        counts[index] += 1
    return counts


# ---- one corpus of ids -------------------------------------------------------------------------------------

Pair = tuple[list[str], list[str]]
ALIGNMENTS = ("alignment", "dev_alignment")  # keys of the alignments of the training and development text
VECTORS = ("source_vectors", "target_vectors")  # keys of the word vectors of each side


@dataclass
class DataConfig:
    """Settings of a run's training and development texts: section `data` of the configuration."""

    train_source: str = setting("", help="parallel text, line by line")
    train_target: str = setting("", help="its translation")
    corpora: list[CorpusConfig] = setting(
        [], help="or several corpora instead, each with source, target, tag, weight or share, filters"
    )
    temperature: float = number(
        1.0,
        above=0,
        help="the share of a corpus is proportional to (weight x pairs)^(1 / temperature); 1: in proportion "
        "to their sizes; 5: small corpora more often (Arivazhagan et al. 2019)",
    )
    alignment: str = setting(
        "",
        help="word alignment of the parallel text, for model.type joint and training.guided_alignment: lines "
        "such as 0-0 1-2, as smt-align writes them, between words as the model reads them, before subwords",
    )
    phrase_table: str = setting(
        "", help="or the unique pairs of a Moses phrase table, instead of parallel text"
    )
    inverse: bool = setting(
        False, help="phrase_table only: learn source given target, the model behind an `inverse` score column"
    )
    dev_source: str = setting("", help="development set")
    dev_target: str = setting("", help="its translation")
    dev_alignment: str = setting("", help="its word alignment, for model.type joint")
    source_vectors: str = setting(
        "",
        help="pretrained vectors of source words, in the text format of word2vec or GloVe; words that the "
        "file lacks are initialized as usual",
    )
    target_vectors: str = setting(
        "", help="pretrained vectors of target words, or of the words of a language model"
    )
    train_text: str = setting(
        "", help="for a language model (lm.type): monolingual text, processed as `target` says"
    )
    dev_text: str = setting("", help="for a language model: development text")
    max_length: int = number(
        30, least=1, help="maximum sentence length in units, without the end symbol; longer pairs are dropped"
    )
    source: SideConfig = field(default_factory=SideConfig)
    target: SideConfig = field(default_factory=SideConfig)
    bpe_merges: int = number(
        0, least=0, help="learn this many BPE merges from the training text; 0: whole words"
    )
    bpe_joint: bool = setting(
        True,
        help="learn one set of BPE codes for both languages; with SentencePiece one model, if they share a "
        "script or the vocabulary",
    )
    bpe_dropout: float = number(
        0.0,
        least=0,
        below=1,
        help="probability of skipping a merge in training (Provilkov et al. 2020); 0.1 helps small corpora",
    )
    pieces: int = number(
        0,
        least=0,
        help="SentencePiece: number of units to learn, all of which get an id; 0: 8000, fewer for a small "
        "text",
    )
    byte_fallback: bool = setting(
        True, help="SentencePiece: split rare characters into bytes; false: they become UNK"
    )
    unigram_sampling: float = number(
        0.0,
        least=0,
        help="subword unigram: segmentations are sampled anew in each epoch, p(segmentation) "
        "to this power (Kudo 2018); 0: always the best one; 0.2 helps small corpora",
    )
    shared_vocabulary: bool = setting(
        False, help="one vocabulary for both sides, counted over both together; for model.tied: all"
    )
    line_tags: list[str] = setting(
        [],
        help="tags that lines may begin with besides those of corpora, such as the target languages of a "
        "model that nmt-import has read: >>fra<<",
    )
    cache: str = setting("", help="folder for the binarized corpus; empty: inside the run directory")
    workers: int = number(
        1, least=1, help="number of processes that tokenize the training text; does not affect the result"
    )

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that a source sentence may begin with."""
        return tuple(dict.fromkeys((*self.line_tags, *corpus_tags(self.corpora))))


def make_stamp(config: DataConfig, source: Vocab, target: Vocab) -> str:
    """A digest that changes with the training files (path, size and modification time), tags and filters, the
    vocabularies, the text pipeline, max_length and inverse. DataError if a file cannot be read."""
    digest = hashlib.sha256()
    listed = [path for corpus in config.corpora for path in (corpus.source, corpus.target)]
    for path in (config.train_source, config.train_target, config.phrase_table, *listed):
        if path and path != "-":
            status = files.status(path)
            digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    for corpus in config.corpora:
        digest.update(f"{corpus.tag} {corpus.filters}\n".encode())
    inverse = " inverse" if config.inverse else ""
    text = f"({text_rules(config.source)}, {text_rules(config.target)})"
    digest.update(f"{text} {config.max_length} {config.bpe_merges} {config.bpe_joint}{inverse}\n".encode())
    for vocab in (source, target):
        digest.update("\n".join(vocab.words).encode())
    return digest.hexdigest()


def text_rules(side: SideConfig) -> str:
    """The settings of a side, for a digest that includes the words of its vocabulary; so its size is omitted.
    If these words come from a file, they do not show what the file of subwords holds: its size and time are
    added."""
    rules = repr(replace(side, vocabulary=0))
    if side.codes and side.vocab_file and Path(side.codes).exists():
        status = files.status(side.codes)
        rules += f" {status.st_size} {status.st_mtime_ns}"
    return rules


def aligned_stamp(config: DataConfig, source: Vocab, target: Vocab, within: str) -> str:
    """Like `make_stamp`, but the digest also changes with the files of alignments and with `within`: the
    scope of affiliations (SENTENCE or PHRASE), or a name for how the alignment is stored. Errors as there."""
    text = within
    for path in (config.alignment, *(corpus.alignment for corpus in config.corpora)):
        if path:
            status = files.status(path)
            text += f" {path} {status.st_size} {status.st_mtime_ns}"
        text += "\n"
    return hashlib.sha256(f"{make_stamp(config, source, target)} {text}".encode()).hexdigest()


def check_config(config: DataConfig, thorough: bool = False) -> None:
    """Check the settings and files of a translator without alignment. ConfigError for settings that are out
    of range or contradict each other, DataError for files that are missing or empty.

    `thorough` also reads all text once, to report bad bytes and unequal numbers of lines before work starts.
    """
    for key in ALIGNMENTS:
        if getattr(config, key):
            exception = " without training.guided_alignment" if key == "alignment" else ""
            raise ConfigError(
                f"data.{key}: for model.type joint only; other models read no alignment{exception}; leave it "
                "out"
            )
    for index, corpus in enumerate(config.corpora):
        if corpus.alignment:
            raise ConfigError(
                f"data.corpora[{index}].alignment: read with training.guided_alignment only; set that, or "
                "leave it out"
            )
    check_pairs(config, thorough)


def check_pairs(config: DataConfig, thorough: bool) -> None:
    """Check parallel text, or a phrase table, for any model. Arguments and errors as in `check_config`."""
    settings.check(config, "data.")
    if config.train_text or config.dev_text:
        raise ConfigError(
            "data.train_text and data.dev_text are for language models: set lm.type, or give train_source "
            "and train_target"
        )
    if bool(config.train_source) != bool(config.train_target):
        raise ConfigError("data.train_source and data.train_target go together: give both")
    if [bool(config.phrase_table), bool(config.train_source), bool(config.corpora)].count(True) != 1:
        raise ConfigError(
            "data: give either train_source and train_target, or a list of corpora, or phrase_table"
        )
    if config.inverse and not config.phrase_table:
        raise ConfigError("data.inverse belongs to phrase_table; for parallel text swap the two files")
    if bool(config.dev_source) != bool(config.dev_target):
        raise ConfigError("data.dev_source and data.dev_target go together: give both")
    if config.source.characters or config.target.characters:
        raise ConfigError(
            "characters: for language models only; a translator has bpe_merges, or model.source_words: "
            "characters"
        )
    if config.shared_vocabulary and (config.source.vocab_file != config.target.vocab_file):
        raise ConfigError(
            "data.shared_vocabulary: source.vocab_file and target.vocab_file have to be the same file, or "
            "both empty"
        )
    parallel = (config.train_source, config.train_target), (config.dev_source, config.dev_target)
    for path in filter(None, (*parallel[0], config.phrase_table, *parallel[1])):
        check_text_file(path)
    for pair in parallel:
        if thorough and pair[0]:
            files.check_parallel(*pair)
    check_corpora_text(config.corpora, thorough)


def check_text_file(path: str) -> None:
    """DataError for a file that is missing, not a regular file, or without lines."""
    if not stat.S_ISREG(files.status(path).st_mode):
        raise DataError(
            f"{path}: not a regular file; training reads a text several times, so write it to a file"
        )
    if next(iter(files.read_byte_lines(path)), None) is None:
        raise DataError(f"{path}: empty file, expected one sentence a line")


def check_text_config(config: DataConfig, thorough: bool = False) -> None:
    """Check the settings and files of a language model. Arguments and errors as in `check_config`."""
    settings.check(config, "data.")
    if not config.train_text:
        raise ConfigError("data.train_text is missing; name the text that the language model learns")
    others = ("train_source", "train_target", "corpora", "phrase_table", "dev_source", "dev_target")
    for key in (*others, *ALIGNMENTS):
        if getattr(config, key):
            raise ConfigError(
                f"data.{key}: a language model reads data.train_text and data.dev_text; leave it out"
            )
    if config.target.characters and (config.bpe_merges or config.target.codes):
        raise ConfigError(
            "data.target.characters: characters are not subwords; leave data.bpe_merges and "
            "target.codes empty"
        )
    for key in ("bpe_dropout", "unigram_sampling"):
        if getattr(config, key):
            raise ConfigError(f"data.{key}: for translators only; leave it out")
    for path in filter(None, (config.train_text, config.dev_text)):
        check_text_file(path)
        if thorough:
            for _ in files.read_lines(path):
                pass


def table_pairs(config: DataConfig) -> Iterator[Pair]:
    """Yield the distinct phrase pairs of `phrase_table`, a file that is read twice, as words, without Moses'
    escapes; with `inverse`, as (target, source). They count as tokenized text. DataError for a malformed
    line."""
    twice = repeated_keys(config.phrase_table)
    seen: set[int] = set()
    for row, pair in enumerate(phrase_table.read(config.phrase_table), 1):
        if twice and (key := pair_key(pair)) in twice:
            if key in seen:
                continue
            seen.add(key)
        position = f"{config.phrase_table}:{row}"
        sides = phrase_table.words(pair.source, position), phrase_table.words(pair.target, position)
        yield sides[::-1] if config.inverse else sides


def pair_key(pair: phrase_table.PhrasePair) -> int:
    """A 64-bit digest of the two phrases."""
    return int.from_bytes(digest64(pair.source + b"\0" + pair.target), "little")


def repeated_keys(path: str) -> set[int]:
    """The `pair_key` of each pair that a table has more than once; takes 41 bytes of memory for each pair."""
    import numpy as np

    keys = np.frombuffer(array("Q", map(pair_key, phrase_table.read(path))), np.uint64)
    values, counts = np.unique(keys, return_counts=True)
    return set(values[counts > 1].tolist())
