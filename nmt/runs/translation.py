"""Translations that a beam search or sampling found, as words."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.search.mbr import choose, evidence
from nmt.text.pipeline import TextPipeline


@dataclass
class BeamTranslation:
    """One hypothesis for a line: tokenized words, subwords joined."""

    words: list[str]
    log_prob: float  # natural logarithm, the end symbol included
    score: float  # what hypotheses are ranked by
    # source word, target word, from 0; with attention only
    alignment: list[tuple[int, int]] = field(default_factory=list)


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
