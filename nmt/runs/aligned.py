"""Translations of sentences by a run with their word alignment, for documents with inline markup."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.documents.inline import AlignedTranslation
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from nmt.text import pipeline
from nmt.text.sentences import LineLimit

if TYPE_CHECKING:
    from nmt.runs.constraints import ConstraintMaker


def align_best(
    run: Run,
    sentences: Sequence[str],
    config: BeamConfig,
    limit: LineLimit | None = None,
    constraints: "ConstraintMaker | None" = None,
    tag: str = "",
) -> list[AlignedTranslation]:
    """The best translation of each sentence. Without attention, and for a sentence that is translated in
    parts, there is no alignment. `tag`: put before each sentence; for the others and errors see
    `Run.best`."""
    lines = [f"{tag} {sentence}" if tag else sentence for sentence in sentences]
    best = run.best(lines, config, limit, constraints, attention=run.attends)
    source = run.members[0].source
    return [
        AlignedTranslation(
            text=run.text(translation),
            source_words=source.join(source.units(sentence)) if translation.alignment else (),
            target_words=translation.words,
            alignment=list(pipeline.without_tag(translation.alignment)) if tag else translation.alignment,
        )
        for sentence, translation in zip(sentences, best, strict=True)
    ]
