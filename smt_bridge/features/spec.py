"""What `--feature` names, and the settings that all features share; nothing is loaded here."""

from dataclasses import dataclass

from nmt.settings import choice, setting


@dataclass(frozen=True)
class FeatureSpec:
    """One `--feature TYPE[:NAME]=PATH`: `translation:RNN0=runs/phrases`."""

    kind: str
    name: str
    path: str


@dataclass(frozen=True)
class FeatureSettings:
    """How features compute: the same in every worker, in a resumed job and in a reused table."""

    checkpoint: str = "best"
    device: str = "cpu"
    threads: int = 1
    back_end: str = "mkl"  # of matrix products, see nmt.compute.matmul
    precision: str = choice(
        "fp32",
        "bf16",
        "int8",
        help="precision of a network's matrix products; the error is measured and printed",
    )
    unknown: str = choice(
        "plain", "split", help="plain: p(UNK) for each unknown word; split: its share by training counts"
    )
    side: str = choice("target", "source", help="whose words unknown-words counts")
    assume_normalized: bool = setting(
        False,
        help="neural-lm, joint, inverse-joint: take log Z as 0; only for a model trained with a normalizer",
    )
    backoff: str = ""  # neural-lm: an ARPA file for the words outside its short-list

    def arithmetic(self) -> bytes:
        """The settings that a network's numbers depend on, as identities of features hold them."""
        normalized = " normalized" if self.assume_normalized else ""
        return f"{self.precision} {self.unknown}{normalized}".encode()
