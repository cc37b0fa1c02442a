"""What engines that translate with trained runs have in common, whatever computes. Torch is not imported."""

import threading
from collections.abc import Sequence

from nmt.errors import UserError
from nmt.runs.pair import LanguagePair
from nmt.runs.run import BeamTranslation, Run, join_translations
from nmt.search.results import FinishedHypothesis
from nmt.serve.engine import Engine, LineHypothesis, TranslatedLine, TranslateOptions
from nmt.text.vocab import UNK


class AnyRunEngine(Engine):
    """An engine that translates with runs. A session searches many sentences together."""

    continuous = True
    run: Run

    def translate(self, line: str, options: TranslateOptions, stop: threading.Event) -> TranslatedLine:
        session = self.session()
        session.add(None, line, options)
        while not stop.is_set():
            for _, answer in session.step():
                if isinstance(answer, UserError):
                    raise answer
                return answer
        raise InterruptedError

    def score(self, pairs: Sequence[tuple[str, str]], tokenized: bool) -> list[list[float]]:
        return self.run.for_text(tokenized).word_scores(pairs)

    def fit(self, line: str) -> float:
        """Compute the share of known characters, counting each character of a word of k units as 1/k."""
        member = self.run.members[0]
        words = member.source.words(line)
        sizes = [len(word) for word in words]
        fit = 0.0
        for word, size in zip(words, sizes, strict=True):
            units = member.source.cut([word])
            if UNK not in member.source_words.encode(units):
                fit += size / max(1, len(units))
        return fit / sum(sizes) if words else 0.0


def join_parts(run: Run, parts: Sequence[tuple[str, FinishedHypothesis]]) -> TranslatedLine:
    """Join the parts of a line that was too long, each with its best hypothesis; word indices continue from
    part to part."""
    member, words, missing = run.members[0], list[str](), list[int]()
    for text, _ in parts:
        units = member.source.units(text)
        missing += [len(words) + position for position in unknown_words(member, units)]
        words += member.source.join(units)
    whole = join_translations([run.translation(text, best) for text, best in parts], run.target)
    whole.alignment = []
    return TranslatedLine(words, [to_hypothesis(run, whole)], missing, parts=len(parts))


def to_hypothesis(run: Run, translation: BeamTranslation) -> LineHypothesis:
    """Convert a translation of a run to the server's hypothesis."""
    return LineHypothesis(
        text=run.text(translation),
        words=translation.words,
        score=translation.score,
        log_prob=translation.log_prob,
        alignment=translation.alignment,
    )


def unknown_words(member: LanguagePair, units: list[str]) -> list[int]:
    """The indices of the source words that contain a unit unknown to a model."""
    words = member.source.word_numbers(units)
    ids = member.source_words.encode(units)
    return sorted({word for word, token_id in zip(words, ids, strict=True) if token_id == UNK})
