"""What earlier versions wrote, in today's terms: run directories for ever, keys of users' own files for one
version.

    0.1.0 - 0.5.0   `nmt-run 1`   config.yaml has the section `model` and since 0.4.0 also `lm`. With an
                                  `lm.type` the run is a language model: `model` means nothing then, and `lm`
                                  has the keys of all types. Until 0.5.0 there was no manifest.
    0.6.0           `nmt-run 2`   config.yaml has one of the two sections, with the keys of its `type` alone.
"""

from collections.abc import Iterator

from nmt.plugins import Registry

Section = dict[str, object]  # a section of a configuration by key; its values may be sections too

FORMATS = ("nmt-run 1", "nmt-run 2")  # the content of the file `version`; the last is today's

# The keys of section `lm` of each type, beside those that all types have. Format 1 wrote all of them.
LM_KEYS: Registry[set[str]] = Registry(
    "former lm keys",
    {
        "cslm": {"order", "layers", "activation", "normalizer"},
        "recurrent": {"cell", "hidden", "depth", "layer_norm", "carry", "bptt", "tied", "normalizer"},
    },
)

# The key training.bleu_tokenizer of a run from before there was one: BLEU of the tokenized text.
TOKENIZED = "tokenized"

# What a run meant whose configuration does not say it.
TEXT_DEFAULTS = {
    "source": {"language": "en", "case": "lower", "segment": "none"},
    "target": {"language": "fr", "case": "lower", "segment": "none"},
}

RENAMED: dict[str, str] = {}  # former key -> present key, both dotted


def of_run(config: Section, version: str) -> Section:
    """The content of a run's config.yaml, of any format, as today's."""
    config = dict(config)
    for old, new in renamed_keys(config):
        move(config, old, new)
    if isinstance(training := config.get("training"), dict):
        config["training"] = {"bleu_tokenizer": TOKENIZED, **training}
    data = config.get("data")
    if isinstance(data, dict):
        sides = {name: data.get(name, {}) for name in TEXT_DEFAULTS}
        filled = {name: TEXT_DEFAULTS[name] | side for name, side in sides.items() if isinstance(side, dict)}
        config["data"] = data | filled
    if version == FORMATS[0]:
        lm = config.pop("lm", None)  # there was none before version 0.4.0
        if isinstance(lm, dict) and lm.get("type"):
            config.pop("model", None)
            config["lm"] = {key: value for key, value in lm.items() if key not in foreign(lm["type"])}
    return config


def of_user(config: Section) -> list[tuple[str, str]]:
    """Bring a user's own file or override up to date, in place. Key and warning of each change."""
    warnings = []
    for old, new in renamed_keys(config):
        move(config, old, new)
        warnings.append((old, f"{old} is now {new}; the next version drops the old name"))
    lm = config.get("lm")
    if isinstance(lm, dict) and lm.get("type") == "" and config.get("model"):
        del config["lm"]  # as version 0.5.0 printed the configuration of a translator
        warnings.append(("lm", "a translator has no section lm; the next version refuses it"))
    return warnings


def of_other_types(config: Section, kind: str) -> list[tuple[str, str]]:
    """Remove the keys of section `lm` of a user's own file that belong to other types: until 0.5.0 there was
    one list of keys for all. Key and warning of each."""
    lm = config.get("lm")
    found = sorted(foreign(kind) & lm.keys()) if isinstance(lm, dict) else []
    for key in found:
        assert isinstance(lm, dict)
        del lm[key]
    ending = f"is not a key of lm.type {kind} and is ignored; the next version refuses it"
    return [(f"lm.{key}", f"lm.{key} {ending}") for key in found]


def foreign(kind: object) -> set[str]:
    """The keys of section `lm` that do not belong to a type, but were written for it."""
    return (
        set().union(*LM_KEYS.values()) - LM_KEYS[kind] if isinstance(kind, str) and kind in LM_KEYS else set()
    )


def renamed_keys(config: Section) -> Iterator[tuple[str, str]]:
    """Former and present name of each key of a configuration that was renamed."""
    for old, new in RENAMED.items():
        section, _, key = old.rpartition(".")
        found = find(config, section)
        if found is not None and key in found:
            yield old, new


def move(config: Section, old: str, new: str) -> None:
    """Give a value its present key."""
    section, _, key = old.rpartition(".")
    found, (target, _, name) = find(config, section), new.rpartition(".")
    there = config
    for part in filter(None, target.split(".")):
        below = there.setdefault(part, {})
        assert isinstance(below, dict)
        there = below
    if found is not None:
        there[name] = found.pop(key)


def find(config: Section, section: str) -> Section | None:
    """A section by its dotted name; None where it is missing."""
    for part in filter(None, section.split(".")):
        below = config.get(part)
        if not isinstance(below, dict):
            return None
        config = below
    return config
