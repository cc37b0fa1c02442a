"""The loaded features of a job, which score chunks of pairs in this process or in workers."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from nmt.errors import ConfigError, DataError
from nmt.lazy import LazyPart
from nmt.work import executors
from nmt.work.executors import Executor, ExecutorConfig
from smt_bridge.features.base import PairFeature, Values, WordPairs
from smt_bridge.features.registry import FEATURES, FeatureSettings, FeatureSpec, need_torch

if TYPE_CHECKING:
    from nmt.compute.device import Arithmetic

# The threads and back end of torch; loaded only for features that need torch.
ARITHMETIC = LazyPart("nmt.compute.device:Arithmetic")
ARITHMETIC_IN_USE = LazyPart("nmt.compute.device:arithmetic_in_use")

Task = list[WordPairs]  # one chunk: the pairs that each feature is to score; features may share them
FeatureExecutor = Executor[Task, list[Values]]


class FeatureSet:
    """Loaded features in the order of their columns."""

    def __init__(self, specs: Sequence[FeatureSpec], settings: FeatureSettings) -> None:
        """UserError, in one line, if a feature cannot be loaded."""
        self.specs, self.settings = list(specs), settings
        self.features = [load_feature(spec, settings) for spec in specs]
        self.names = [spec.name for spec in specs]

    def __len__(self) -> int:
        return len(self.features)

    def identities(self) -> list[str]:
        """The identity of each feature, in order; see PairFeature.identity."""
        return [feature.identity() for feature in self.features]

    def compute(self, task: Task) -> list[Values]:
        """Score each feature's pairs. DataError, with the option, for a feature that does not return one
        number for each pair; also the errors of `PairFeature.score`."""
        return [
            check_scores(feature.score(pairs), len(pairs), spec) if len(pairs) else np.zeros(0)
            for feature, pairs, spec in zip(self.features, task, self.specs, strict=True)
        ]

    def executor(self, config: ExecutorConfig) -> FeatureExecutor:
        """Create an executor that scores chunks, a context manager. Its workers load the same models; a
        worker whose models differ raises DataError."""
        specs = [replace(spec, path=absolute(spec.path)) for spec in self.specs]
        settings = replace(self.settings, backoff=absolute(self.settings.backoff))
        elsewhere = partial(load_worker, specs, settings, self.identities())
        return executors.make(self.compute, elsewhere, config)

    def precision_error(self, pairs: WordPairs) -> str:
        """Measure the error in log p that --precision causes on a sample, and describe it; empty if no
        feature is affected."""
        parts = []
        for name, feature in zip(self.names, self.features, strict=True):
            if reference := feature.exact():
                exact = reference.score(pairs)
                error = np.abs(feature.score(pairs) - exact)
                parts.append(
                    f"{name}: error in log p {error.mean():.4f} on average, {error.max():.4f} at most "
                    f"(mean log p {exact.mean():.2f})"
                )
        if not parts:
            return ""
        return f"{self.settings.precision} against fp32 on {len(pairs):,} pairs: {'; '.join(parts)}"


def load_feature(spec: FeatureSpec, settings: FeatureSettings) -> PairFeature:
    """Load the feature of an option. ConfigError for a kind of a plugin that loads anything else; also the
    errors of `FeatureKind.load`."""
    feature: object = FEATURES[spec.kind].load(spec, settings)
    if not isinstance(feature, PairFeature):
        raise ConfigError(
            f"--feature {spec.kind}:{spec.name}={spec.path}: its load returned an object of type "
            f"{type(feature).__name__}, expected one of a subclass of PairFeature"
        )
    return feature


def check_scores(values: object, count: int, spec: FeatureSpec) -> Values:
    """Convert the scores of a feature to an array. DataError, which names the option `spec`, unless they are
    numbers of shape (count,) and not nan."""
    option = f"--feature {spec.kind}:{spec.name}={spec.path}"
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{option}: gives no numbers ({error}); expected {count}, one for each pair"
        ) from error
    if numbers.shape != (count,):
        raise DataError(f"{option}: gives an array of shape {numbers.shape}, expected ({count},)")
    if np.isnan(numbers).any():
        raise DataError(f"{option}: gives nan for {int(np.isnan(numbers).sum())} of {count} pairs")
    return numbers


def process_settings(specs: Sequence[FeatureSpec]) -> FeatureSettings:
    """Feature settings with this process's number of threads and back end of matrix products; the defaults
    for features that do not need torch."""
    if not need_torch(specs):
        return FeatureSettings()
    arithmetic = cast("Callable[[], Arithmetic]", ARITHMETIC_IN_USE.load())()
    return FeatureSettings(**asdict(arithmetic))


def absolute(path: str) -> str:
    """Make a path absolute, for workers with another working directory. An empty path stays empty."""
    return path and os.path.abspath(path)


def load_worker(
    specs: Sequence[FeatureSpec], settings: FeatureSettings, identities: Sequence[str]
) -> Callable[[Task], list[Values]]:
    """Load the features of a job in a worker, and return the function that scores a chunk. Features that need
    torch set the threads and the back end of the worker's process. `identities`: of the features where the
    job was started; DataError for a model whose identity differs."""
    if need_torch(specs):
        cast("type[Arithmetic]", ARITHMETIC.load())(settings.threads, settings.back_end).use()
    features = FeatureSet(specs, settings)
    for spec, identity, expected in zip(specs, features.identities(), identities, strict=True):
        if identity != expected:
            raise DataError(
                f"{spec.path}: differs from the model where the job was started; copy it to every worker"
            )
    return features.compute
