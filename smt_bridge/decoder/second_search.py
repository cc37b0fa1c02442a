"""A second search for systems with networks, without these: it often finds translations that the search with
networks has pruned.

The search with networks prunes candidates before they are scored, and recombines hypotheses that have read
different words. For some sentences it thus ends with a translation whose total score is below that of one
that it has dropped; larger stacks and beams hardly help. The second search leaves out the stateful features.
The first language model stands in for them, with the weight by which the first search ranks candidates that
wait for their scores, so both rank by the same options and future costs. The best of its list are then scored
by all features, and compete with those of the first search.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace

from smt_bridge.decoder import plain
from smt_bridge.decoder.arrays import Int32s
from smt_bridge.decoder.compiled_search import compiled_search
from smt_bridge.decoder.model import Listing, SearchModel, SearchTask
from smt_bridge.decoder.translation import Derivation


class SecondSearch:
    """The search without stateful features. Several threads may share it."""

    def __init__(self, model: SearchModel, count: int, factor: int) -> None:
        """`model`: that of the first search. `count`: number of different texts to list; at most count x
        `factor` derivations are examined for them."""
        self.model = replace(model, lm_weights=model.early_weights, stateful=())
        self.listing = Listing(count, True, factor)
        # With memory of its own: arrays of the two searches have different sizes.
        self.compiled = compiled_search(model)

    def paths(self, task: SearchTask, stop: threading.Event | None = None) -> list[Int32s]:
        """Search again for a task of the first search, under its constraints. Returns the best derivations,
        each as option indices in target order; an empty list if walls and zones leave no way to translate the
        whole sentence. Raises Stopped once `stop` is set."""
        own = replace(
            task,
            parameters=task.parameters._replace(edges=True, deferred=False, stand_in=self.model.stand_in),
            model=self.model,
            scorers=(),
        )
        search = self.compiled.search if self.compiled else plain.search
        return search(own, self.listing, stop)[0]


def union(first: Sequence[Int32s], second: Sequence[Int32s]) -> list[Int32s]:
    """Merge the paths of both searches, without duplicates."""
    return list({path.tobytes(): path for path in (*first, *second)}.values())


def best_of_both(derivations: Sequence[Derivation], listing: Listing) -> list[Derivation]:
    """Select the derivations to list. `derivations`: those of both searches, sorted by total, best first;
    `listing`: how many, and whether texts must differ."""
    if listing.distinct:
        texts = dict[tuple[str, ...], Derivation]()
        for derivation in derivations:
            texts.setdefault(tuple(derivation.text), derivation)
        derivations = list(texts.values())
    return list(derivations[: max(1, listing.nbest)])
