"""Systems that single papers describe, each in a file or a folder of its own. The core knows none of them: it
looks into `PARTS` where it makes a registry or a dataclass of settings (`nmt/plugins.py`), and imports a
module of a paper when one of its parts is first used.

    multiscale      the multi-scale LSTM (van Merriënboer 2018, chapter 8)
    mrf             a Markov random field over words (Jernite 2018, chapter 4)
    discourse       encoders trained by discourse objectives (Jernite 2018, chapter 5)
    variable        cells that compute a part of their state at each step (Jernite 2018, section 2.4)
    learned_tree    an output layer in whose tree words move while it is trained (Jernite 2018, chapter 3)
"""

from collections.abc import Mapping

from nmt.lazy import LazyPart

PARTS: Mapping[str, Mapping[str, LazyPart]] = {  # kind -> name -> part
    "run file": {"dictionary": LazyPart("nmt.papers.multiscale.dictionary:Dictionary")},
    "language model": {
        "multiscale": LazyPart("nmt.papers.multiscale.model:MultiscaleLM", precedes="transformer")
    },
    "output layer": {"learned-tree": LazyPart("nmt.papers.learned_tree:LearnedTree", precedes="nce")},
    "output settings": {
        "learned-tree": LazyPart("nmt.papers.settings:RebuildSettings", precedes="output_samples")
    },
    "cell": {
        "vcrnn": LazyPart(
            "nmt.papers.variable.cells:VCRNN", help="vcrnn and vcgru compute a part of the state at each step"
        ),
        "vcgru": LazyPart("nmt.papers.variable.cells:VCGRU"),
    },
    "cell settings": {"variable": LazyPart("nmt.papers.settings:ComputationSettings")},
    "analysis": {"computation": LazyPart("nmt.papers.variable.analysis:Computation", precedes="words")},
    "other model": {"discourse": LazyPart("nmt.papers.discourse:Discourse")},
    "trainable": {"encoder": LazyPart("nmt.papers.discourse:ENCODER")},
    "feature": {"mrf": LazyPart("nmt.papers.mrf:MRF", precedes="joint")},
}
