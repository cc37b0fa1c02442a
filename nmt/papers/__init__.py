"""Systems that single papers describe, each in a folder of its own. The core knows none of them: it looks
into `PARTS` where it makes a registry or a dataclass of settings (`nmt/plugins.py`), and imports a module of
a paper when one of its parts is first used.

    multiscale      the multi-scale LSTM (van Merriënboer 2018, chapter 8)
"""

from collections.abc import Mapping

from nmt.lazy import LazyPart

PARTS: Mapping[str, Mapping[str, LazyPart]] = {  # kind -> name -> part
    "run file": {"dictionary": LazyPart("nmt.lm.multiscale.dictionary:Dictionary")},
    "language model": {"multiscale": LazyPart("nmt.lm.multiscale.model:MultiscaleLM", before="transformer")},
    "former lm keys": {"multiscale": LazyPart("nmt.lm.multiscale.model:FORMER_KEYS")},
}
