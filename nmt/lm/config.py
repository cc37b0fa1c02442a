"""The settings that all neural language models share; each type adds its own, beside its model."""

from dataclasses import dataclass

from nmt import settings
from nmt.layers.output import OutputSettings, check_output
from nmt.settings import MOST_UNITS, choice, number, setting


@dataclass
class LMConfig(OutputSettings):
    """The section `lm` of a run: `type` names a class in nmt.lm.registry.LANGUAGE_MODELS, whose `Config` has
    the keys of that type. An empty type: the run is a translator."""

    type: str = setting("", help="what kind of language model to train; empty: a translator")
    embedding: int = number(512, least=1, most=MOST_UNITS, help="size of a word vector")
    dropout: float = number(
        0.0, least=0, below=1, help="on embeddings and outputs of layers, never on recurrent connections"
    )
    init: str = choice("uniform", "paper", "glorot", help="distribution of initial weights; paper: normal")
    init_scale: float = number(
        0.01,
        above=0,
        help="width of uniform and normal; the paper's CSLM is U(±0.01), recurrent models want 0.1",
    )

    def check(self) -> None:
        """ConfigError for a value out of range, and for values that do not go together."""
        settings.check(self, "lm.")
        check_output(self, "lm")

    @property
    def vector_sides(self) -> tuple[str, ...]:
        """`("target",)` where words have a table of vectors of size `embedding`; the class is then
        `WordTables` of nmt/models/protocols.py."""
        return ()
