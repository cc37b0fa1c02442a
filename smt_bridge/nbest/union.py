"""Reads n-best lists of one text together, as one list. For each sentence, the entries of all lists are
united, and entries get the features that they lack."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nmt.errors import ConfigError, DataError, UserError
from nmt.formats import nbest
from nmt.formats.nbest import Hypothesis
from nmt.io import files, numbers
from nmt.text import sentences
from nmt.text.tokenize import escape, unescape
from smt_bridge.moses.sparse_weights import is_sparse

log = logging.getLogger(__name__)

WORD_PENALTY = "WordPenalty"
WHOLE = "a score of the whole sentence"


@dataclass
class NbestSentence:
    """The hypotheses of one source line. `lists[i]`: indices of the lists that contain hypothesis i;
    `groups`: the entries of each list separately."""

    number: int  # from 0
    source: list[str]
    hypotheses: list[Hypothesis]
    lists: list[frozenset[int]]
    groups: Sequence[list[Hypothesis]] = ()


@dataclass
class NbestLists:
    """N-best lists of one text, and how to read them."""

    paths: list[str]
    source: str  # the text, as the decoder read it
    fill_missing: bool = False  # a feature that a list lacks is 0 in its entries
    escape: bool = False  # whether to escape words as Moses does
    sizes: dict[str, int] = field(default_factory=dict)  # of each dense feature, after `survey`

    def survey(self) -> list[str]:
        """Read the lists once, and set `sizes`. Returns the sorted names that no new feature may have: those
        of features that every list has, of features with several values, and of the indicators. Only the
        first entry of each sentence counts. ConfigError if one of several lists has features without names,
        DataError for a file that is not an n-best list, and for a feature with another number of values than
        in the lists before."""
        names_by_list: list[set[str]] = []
        for path in self.paths:
            count = 0
            names: set[str] = set()
            for _, group in nbest.by_sentence(path):
                count += len(group)
                names |= set(group[0].features)
                for name, values in group[0].features.items():
                    if not is_sparse(name) and self.sizes.setdefault(name, len(values)) != len(values):
                        raise DataError(
                            f"{path}: {name} has {len(values)} values, but {self.sizes[name]} in the lists "
                            "before; rename it in one of them"
                        )
            if nbest.UNLABELED in names and len(self.paths) > 1:
                raise ConfigError(
                    f"{path}: features without names, which cannot be distinguished from those of other "
                    "lists; let Moses write them (-labeled-n-best-list true)"
                )
            names_by_list.append(names)
            log.info("%s: %s entries", path, f"{count:,}")
        wide = [name for name, size in self.sizes.items() if size > 1]
        return sorted({*set.intersection(*names_by_list), *wide, *self.indicators(frozenset())})

    def indicators(self, lists: frozenset[int]) -> dict[str, list[float]]:
        """Indicator features List0, List1 ... of an entry: 1 if the list contains it, else 0; none if there
        is a single list. `lists`: indices of the lists that contain the entry."""
        several = range(len(self.paths)) if len(self.paths) > 1 else ()
        return {f"List{number}": [float(number in lists)] for number in several}

    def sentences(self, computed: Collection[str], limit: int = 0) -> Iterator[NbestSentence]:
        """Yield the sentences with the union of their entries. `computed`: names of features that will be
        computed and may be missing; `limit`: maximum number of words of a source sentence or hypothesis, 0
        for any. UserError for an entry that lacks features of others, unless `fill_missing` is set; DataError
        for a sentence that is too long, is in no list, or is not in the text."""
        for sentence in read_together(self.paths, self.source):
            if limit:
                refuse_long(sentence, limit, self.source, self.paths)
            if len(self.paths) > 1:
                add_word_penalty(sentence)
            if not self.fill_missing:
                index, names = missing_features(sentence, computed)
                if names:
                    raise UserError(
                        f"{self.paths[index]}: sentence {sentence.number} has hypotheses without "
                        f"{', '.join(names)}, which are not computed from the text; "
                        "give a --feature of that name, e.g. lm:LM0=FILE, or --fill-missing, which uses 0 "
                        "and marks such entries by the List features"
                    )
            if self.escape:
                for hypothesis in sentence.hypotheses:
                    text = " ".join(map(escape, hypothesis.text))
                    hypothesis.raw = nbest.replace_field(hypothesis.raw, 1, text)
            yield sentence

    def complete(self, hypothesis: Hypothesis, new: Mapping[str, list[float]], lists: frozenset[int]) -> None:
        """Change an entry to have the features in `sizes` in one order, then its others, which are sparse,
        and the indicators. A feature in `sizes` that it lacks gets its values in `new`, or else 0. `lists`:
        indices of the lists that contain the entry. Call `survey` first."""
        by_name = {**new, **hypothesis.features}
        features = {name: by_name.get(name, [0.0] * size) for name, size in self.sizes.items()}
        sparse = {name: values for name, values in hypothesis.features.items() if name not in self.sizes}
        hypothesis.features = {**features, **sparse, **self.indicators(lists)}
        hypothesis.raw = nbest.replace_field(hypothesis.raw, 2, nbest.format_features(hypothesis.features))


def read_together(paths: Sequence[str], sources: str) -> Iterator[NbestSentence]:
    """Yield the entries of all lists, sentence by sentence. `paths`: of the lists; `sources`: of the text.
    DataError for a sentence that is missing from all lists or is not in the text."""
    streams = [nbest.by_sentence(path) for path in paths]
    heads = [next(stream, None) for stream in streams]
    number = -1
    for number, line in enumerate(files.read_lines(sources)):
        groups = [head[1] if head and head[0] == number else [] for head in heads]
        if not any(groups):
            raise DataError(
                f"{', '.join(map(files.name_of, paths))}: no entry for sentence {number} (line {number + 1} "
                f"of {sources}); is this the list of another text?"
            )
        hypotheses, lists = union(groups)
        source = files.split_words(line)
        yield NbestSentence(number=number, source=source, hypotheses=hypotheses, lists=lists, groups=groups)
        heads = [
            next(stream, None) if group else head
            for head, group, stream in zip(heads, groups, streams, strict=True)
        ]
    for head, path in zip(heads, paths, strict=True):
        if head is not None:
            raise DataError(
                f"{files.name_of(path)}: entries for sentence {head[0]}, but {sources} has "
                f"{numbers.counted(number + 1, 'line')} (ids count from 0)"
            )


def refuse_long(sentence: NbestSentence, limit: int, sources: str, paths: Sequence[str]) -> None:
    """DataError if the source or a hypothesis has more than `limit` words, and is thus too long to be scored
    as a whole sentence. `sources`, `paths`: of the text and the lists, for messages."""
    if len(sentence.source) > limit:
        raise sentences.long_line_error(
            f"{sources}:{sentence.number + 1}", len(sentence.source), limit, WHOLE
        )
    for hypothesis, lists in zip(sentence.hypotheses, sentence.lists, strict=True):
        if len(hypothesis.text) > limit:
            raise sentences.long_line_error(
                f"{files.name_of(paths[min(lists)])}: sentence {sentence.number}",
                len(hypothesis.text),
                limit,
                WHOLE,
            )


def union(groups: Sequence[list[Hypothesis]]) -> tuple[list[Hypothesis], list[frozenset[int]]]:
    """Unite the entries of all lists; also returns the indices of the lists that contain each entry. If
    several lists contain a text, only the entries of the first of them are kept; they are changed to have
    also the features that they lack and that the text's first entry in another list has."""
    if len(groups) == 1:
        return groups[0], [frozenset([0])] * len(groups[0])
    holders: dict[str, dict[int, Hypothesis]] = {}
    for number, group in enumerate(groups):
        for hypothesis in group:
            holders.setdefault(unescaped_text(hypothesis.text), {}).setdefault(number, hypothesis)
    entries, lists = [], []
    for number, group in enumerate(groups):
        for hypothesis in group:
            by_list = holders[unescaped_text(hypothesis.text)]
            if number != min(by_list):
                continue  # an entry of the first list that has this text stands for it
            for later in sorted(set(by_list) - {number}):
                for name, values in by_list[later].features.items():
                    hypothesis.features.setdefault(name, values)
            entries.append(hypothesis)
            lists.append(frozenset(by_list))
    return entries, lists


def unescaped_text(words: Sequence[str]) -> str:
    """The text without Moses' escapes, as nmt-translate writes it."""
    return " ".join(map(unescape, words))


def add_word_penalty(sentence: NbestSentence) -> None:
    """Add Moses' word penalty, the negative number of words, to entries that lack it, under each name that it
    has in other entries. It is the only feature that follows from the text alone."""
    names = {
        name
        for hypothesis in sentence.hypotheses
        for name in hypothesis.features
        if name.startswith(WORD_PENALTY)
    }
    for hypothesis in sentence.hypotheses:
        for name in names:
            hypothesis.features.setdefault(name, [-float(len(hypothesis.text))])


def missing_features(sentence: NbestSentence, computed: Collection[str]) -> tuple[int, list[str]]:
    """Index of a list in which an entry lacks features that others have, and these features; (0, []) if no
    entry lacks any. Sparse features, whose names contain _, do not count, nor do those in `computed`, since a
    --feature of that name fills them in."""
    names = list(
        dict.fromkeys(
            name for hypothesis in sentence.hypotheses for name in hypothesis.features if "_" not in name
        )
    )
    for hypothesis, lists in zip(sentence.hypotheses, sentence.lists, strict=True):
        lacking = [name for name in names if name not in hypothesis.features and name not in computed]
        if lacking:
            return min(lists), lacking
    return 0, []
