"""The features of the search by the first word of their line in a moses.ini. A feature of your own adds a
line: SEARCH_FEATURES["Mine"] = Mine. See CONTRIBUTING.md."""

from smt_bridge.decoder.features.cslm import CSLM
from smt_bridge.decoder.features.neural_translation import NeuralTranslation
from smt_bridge.decoder.features.nnjm import NNJM
from smt_bridge.decoder.features.protocol import SearchFeature

SEARCH_FEATURES: dict[str, type[SearchFeature]] = {
    "CSLM": CSLM,
    "NNJM": NNJM,
    "NeuralTranslation": NeuralTranslation,
}
