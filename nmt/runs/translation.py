"""Translations that a beam search or sampling found, as words."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.runs.checkpoint import SavedRun
from nmt.search.beam import Candidate
from nmt.search.mbr import choose, evidence
from nmt.text.lexicon import Lexicon
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import SPECIALS, UNK


@dataclass
class BeamTranslation:
    """One hypothesis for a line: tokenized words, subwords joined."""

    words: list[str]
    log_prob: float  # natural logarithm, the end symbol included
    score: float  # what hypotheses are ranked by
    # source word, target word, from 0; with attention only
    alignment: list[tuple[int, int]] = field(default_factory=list)


def nothing() -> Candidate:
    """The translation of a line without words."""
    return Candidate(words=[], log_prob=0.0, score=0.0)


def of_candidate(
    run: SavedRun, line: str, candidate: Candidate, tokenized: bool, unknown: Lexicon | None
) -> BeamTranslation:
    """What the search found for a line as words. `unknown`: replace each UNK by this table's translation of
    the source word that the attention looked at."""
    units = run.target_words.decode(candidate.words)
    words_of = run.target.word_numbers(units)
    alignment: list[tuple[int, int]] = []
    if candidate.looked_at:
        source_units = run.source.units(line, tokenized)
        source_of = run.source.word_numbers(source_units)
        source = run.source.join(source_units)
        alignment = sorted(
            {(source_of[look], words_of[place]) for place, look in enumerate(candidate.looked_at)}
        )
        if unknown is not None:
            words = (source[source_of[look]] for look in candidate.looked_at)
            instead = [SPECIALS[UNK] if word in run.source.tags else unknown.best(word) for word in words]
            units = [
                other if unit == SPECIALS[UNK] else unit for unit, other in zip(units, instead, strict=True)
            ]
    return BeamTranslation(
        words=run.target.join(units),
        log_prob=candidate.log_prob,
        score=candidate.score,
        alignment=alignment,
    )


def joined(parts: Sequence[BeamTranslation], target: TextPipeline) -> BeamTranslation:
    """Translations of the parts of a line as one, without alignment."""
    if len(parts) == 1:
        return parts[0]
    return BeamTranslation(
        words=target.joined(part.words for part in parts),
        log_prob=sum(part.log_prob for part in parts),
        score=sum(part.score for part in parts),
    )


def least_risk(translations: Sequence[BeamTranslation], metric: str, scale: float) -> BeamTranslation:
    """The translation of minimum Bayes risk: p is exp(scale x score), normalized over these; 0 counts them
    alike, as draws from the model are to be counted. `metric`: bleu or chrf, of tokenized words."""
    texts = [" ".join(found.words) for found in translations]
    given = evidence([list(zip(texts, (found.score for found in translations), strict=True))])
    return translations[texts.index(given.texts[choose(given, metric, [[scale]])[0]])]
