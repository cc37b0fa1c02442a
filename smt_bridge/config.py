"""Settings of training and proposals, from which the options of their commands are generated.

The settings of the decoder, extraction, pruning and tuning are in config.py of their own packages.
"""

from dataclasses import dataclass, field

from nmt.config.settings import name_in, number
from smt_bridge.decoder.config import CompileConfig
from smt_bridge.extraction.alignment import ALIGNERS
from smt_bridge.extraction.config import ExtractConfig, PruneConfig
from smt_bridge.extraction.heuristics import HEURISTICS


@dataclass
class TrainConfig:
    """How to train a phrase-based model from parallel text."""

    source: str
    target: str
    alignment: str = ""  # alignment points of another tool, used instead of aligning
    lm_text: str = ""  # training text of the language model; default: the target side
    add: str = ""  # folder of a model to whose text the pairs are added
    method: str = name_in(
        ALIGNERS, help="model of word alignment; eflomal calls the program eflomal-align, if installed"
    )
    symmetrization: str = name_in(HEURISTICS, help="how the two directions of word alignment are combined")
    order: int = number(5, least=1, most=10, help="order of the language model")
    class_lm: int = number(
        0, least=0, help="word classes of a second language model, of classes instead of words; 0: none"
    )
    class_order: int = number(7, least=1, most=10, help="order of the language model of word classes")
    reordering: bool = True
    osm: int = number(
        0, least=0, most=10, help="also train an operation sequence model of this order, such as 5; 0: none"
    )
    osm_classes: int = number(
        0,
        least=0,
        help="word classes of each side for a second operation sequence model, of classes instead of words, "
        "with --osm; 0: none",
    )
    sparse_features: int = number(
        0,
        least=0,
        help="also write sparse features of the N most frequent words of each side into moses.ini, such as "
        "50; kbmira tunes them; 0: none",
    )
    distortion_limit: int = number(
        6, least=-1, help="longest jump in words, written into moses.ini; -1: unlimited"
    )
    extract: ExtractConfig = field(default_factory=ExtractConfig)
    prune: PruneConfig = field(default_factory=PruneConfig)
    compiled: CompileConfig | None = None  # how the model is also compiled; None: it is not


@dataclass
class ProposeConfig:
    """Which source phrases an encoder-decoder proposes translations for, and how many."""

    options: int = number(3, least=1, help="proposals for a source phrase")
    beam_size: int = number(10, least=1, help="beam size of the search for them")
    thin: int = number(1, least=0, help="propose where the table has at most N options")
    rare: int = number(2, least=0, help="also propose where the source was extracted at most N times")
    max_length: int = number(4, least=1, help="maximum length of a source phrase in words")
    least: float = number(0.05, least=0, most=1, help="minimum probability of a proposal")
