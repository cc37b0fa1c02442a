"""Runs and ensembles as engines of the server."""

import threading
from collections.abc import Sequence
from pathlib import Path

from nmt.errors import UserError
from nmt.runs import directory as run_directory
from nmt.runs.constraints import ConstraintMaker
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from nmt.serve import engine, run_session
from nmt.serve.config import EngineConfig
from nmt.serve.engine import EngineInfo, Options, Translated
from nmt.serve.run_session import RunSession
from nmt.text.vocab import UNK


class RunEngine:
    """A run, or several as an ensemble."""

    workers = 1  # session: many sentences are searched in one batch

    def __init__(self, run: Run, config: BeamConfig) -> None:
        self.run, self.config = run, run.fitted(config)
        member = run.members[0]
        can = [engine.N_BEST, engine.BEAM_SIZE, engine.TOKENIZED, engine.SCORE, engine.TERMS, engine.AVOID]
        if member.model.attends:
            can += [engine.ALIGNMENT, engine.ATTENTION]
        if run_session.parses(run):
            can.append(engine.PARSE)
        self.info = EngineInfo(
            kind="run" if len(run.members) == 1 else "ensemble",
            description=" + ".join(one.description for one in run.members),
            source=member.data.source.language,
            target=member.data.target.language,
            capabilities=tuple(can),
            beam_size=config.beam_size,
            tags=tuple(member.source.tags),
        )

    def session(self) -> RunSession:
        return RunSession(self.run, self.config)

    def translate(self, line: str, options: Options, stop: threading.Event) -> Translated:
        session = self.session()
        session.add(None, line, options)
        while not stop.is_set():
            for _, found in session.step():
                if isinstance(found, UserError):
                    raise found
                return found
        raise InterruptedError

    def prepare(self, options: Options) -> ConstraintMaker | None:
        return run_session.constraint_maker(self.run, options)

    def score(self, pairs: Sequence[tuple[str, str]], tokenized: bool) -> list[list[float]]:
        return self.run.word_scores(pairs, tokenized)

    def fit(self, line: str) -> float:
        """A word that is cut into k units counts as 1/k."""
        member = self.run.members[0]
        words = member.source.words(line)
        sizes = [len(word) for word in words]
        known = 0.0
        for word, size in zip(words, sizes, strict=True):
            units = member.source.cut([word])
            if UNK not in member.source_words.encode(units):
                known += size / max(1, len(units))
        return known / sum(sizes) if words else 0.0


class Runs:
    """The kind: a run directory, or several with commas between them."""

    def reads(self, path: str) -> bool:
        return all(run_directory.exists(Path(one)) for one in members(path))

    def load(self, path: str, config: EngineConfig) -> RunEngine:
        run = Run.of(*members(path), device=config.device)
        return RunEngine(run, BeamConfig(beam_size=config.beam_size))


def members(path: str) -> list[str]:
    """a,b -> a b, unless there is a file of that name; a folder of nmt-init stands for its run"""
    paths = [path] if Path(path).exists() else [name for name in path.split(",") if name]
    return [str(run_directory.resolve(name)) for name in paths]
