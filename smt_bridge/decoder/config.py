"""What a decoder does, whatever model it has. The defaults are Moses'."""

from dataclasses import dataclass

from nmt.errors import ConfigError

TABLE_LIMIT = 20
DISTORTION_LIMIT = 6
WIDEST = 63  # words beyond the first untranslated one that a coverage can hold


@dataclass(frozen=True)
class DecoderConfig:
    stack: int = 200  # hypotheses kept for each number of translated words; 0: all
    table_limit: int | None = None  # best options of a source phrase; 0: all; None: the ini's, or 20
    distortion_limit: int | None = None  # of a jump, in words; -1: none; None: the ini's, or 6
    beam_threshold: float = 1e-5  # hypotheses of less than this share of the best one's probability are dropped
    nbest: int = 0  # translations listed; 0: only the best
    distinct: bool = False  # of different texts
    nbest_factor: int = 20  # at most so many derivations looked at for each one listed, where they are to be distinct
    neural_beam: int = 500  # candidates of a stack that neural language models score; 0: all
    buffer: int = 8192  # n-grams scored by them at a time

    def check(self) -> None:
        """ConfigError for a value out of range."""
        for name, least in (("stack", 0), ("table_limit", 0), ("distortion_limit", -1), ("nbest", 0), ("nbest_factor", 1), ("neural_beam", 0), ("buffer", 1)):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise ConfigError(f"--{name.replace('_', '-')} {getattr(self, name)}: expected {least} or more")
        if not 0 <= self.beam_threshold <= 1:
            raise ConfigError(f"--beam-threshold {self.beam_threshold}: expected 0 to 1")
