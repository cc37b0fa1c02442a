"""The features of the phrase-based search, by the first word of their line in moses.ini. Register one of your
own by SEARCH_FEATURES["Mine"] = Mine; see CONTRIBUTING.md."""

from smt_bridge.decoder.features.neural_translation import NeuralTranslation
from smt_bridge.decoder.features.ngram_networks import CSLMFeature, NNJMFeature
from smt_bridge.decoder.features.operation_sequence import OperationSequenceModel
from smt_bridge.decoder.features.protocol import SearchFeature
from smt_bridge.decoder.features.sparse import (
    PhraseLength,
    SourceWordDeletion,
    TargetWordInsertion,
    WordTranslation,
)

SEARCH_FEATURES: dict[str, type[SearchFeature]] = {
    "CSLM": CSLMFeature,
    "NNJM": NNJMFeature,
    "NeuralTranslation": NeuralTranslation,
    "OpSequenceModel": OperationSequenceModel,
    "WordTranslationFeature": WordTranslation,
    "TargetWordInsertionFeature": TargetWordInsertion,
    "SourceWordDeletionFeature": SourceWordDeletion,
    "PhraseLengthFeature": PhraseLength,
}
