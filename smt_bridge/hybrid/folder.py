"""The folder of a hybrid system: a phrase-based model, its networks, and the text processing of both sides.

system.json        format, text settings, names and checksums of all parts; written last
moses.ini          paths relative to the folder, so that it can be moved and copied
truecase.source truecase.target    where text is truecased
phrase-table.gz, lm.arpa.gz, networks/ ...    what moses.ini names
glossary.tsv       the user's terms, if there are any
fast/              a small Transformer that has learned from the system, if there is one: a run of nmt;
                   without it, --quality fast translates with networks/attention
build/             files that only smt-build needed

{"format": "nmt-system 1", "ini": "moses.ini", "glossary": "", "fast": "", "search": {"stack": 100},
 "source": {"language": "en", "normalize": true, "tokenize": true, "segment": "auto", "case": "truecase"},
 "target": {...}, "files": {"lm.arpa.gz": {"size": 4242, "sha256": "..."}, ...}}
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from nmt.config import settings
from nmt.errors import ConfigError, DataError
from nmt.io import files, manifest
from nmt.io.manifest import ManifestEntry
from nmt.io.numbers import shown
from nmt.runs.directory import VERSION_FILE, model_files
from nmt.text import pipeline
from nmt.text.pipeline import SideConfig
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.hybrid import side
from smt_bridge.hybrid.side import TextSide
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import PATH_KEYS, WEIGHT_FILE, FeatureLine, find_table

FILE, FORMAT = "system.json", "nmt-system 1"
FAST = "fast"  # the folder of the student, which smt-build --student trains
BEGUN = "build/build.json"  # the first file that smt-build writes, which shows that a build has begun
SIDES = ("source", "target")
TEXT = ("language", "normalize", "tokenize", "segment", "case")  # fields of SideConfig that are stored
# fields of DecoderConfig that system.json must not set
NOT_SEARCH = {"nbest", "distinct", "explain", "xml_brackets"}
QUICK = 1 << 20  # smaller files (bytes) are verified by checksum whenever the folder is read

Value = int | float | bool | str


@dataclass
class HybridConfig:
    """Settings of a hybrid system. Of `source` and `target`, only the fields in TEXT are used: vocabularies
    and subwords are part of the networks."""

    source: SideConfig
    target: SideConfig
    ini: str = "moses.ini"
    glossary: str = ""  # a file in the folder; empty if there is none
    fast: str = ""  # the run of --quality fast, a folder in the folder; empty if there is none
    search: dict[str, Value] = field(default_factory=dict)  # defaults of smt-decode: fields of DecoderConfig


@dataclass
class Hybrid:
    """A hybrid system that has been read: its settings, parts, and the text processing of both sides."""

    folder: Path
    config: HybridConfig
    source: TextSide
    target: TextSide
    parts: dict[str, ManifestEntry]  # by path relative to the folder

    @property
    def ini(self) -> str:
        """The path of the system's moses.ini."""
        return str(self.folder / self.config.ini)

    @property
    def glossary(self) -> str:
        """The path of the system's glossary; empty if it has none."""
        return str(self.folder / self.config.glossary) if self.config.glossary else ""

    @property
    def fast(self) -> str:
        """The path of the run of --quality fast; empty if the system has none."""
        return str(self.folder / self.config.fast) if self.config.fast else ""

    def decoder_config(self) -> DecoderConfig:
        """The decoder settings stored in the system, with defaults for all others."""
        return settings.changed(DecoderConfig(), self.config.search)


def is_hybrid(path: str | Path) -> bool:
    """Whether a path is the folder of a hybrid system. ConfigError if smt-build has not finished it, even if
    a moses.ini already exists."""
    if (Path(path) / FILE).is_file():
        return True
    if (Path(path) / BEGUN).is_file():
        raise ConfigError(
            f"{path}: is not finished, there is no {FILE}; run smt-build again as before to continue"
        )
    return False


def fast_run(hybrid: Hybrid) -> str:
    """The path of the run of --quality fast. ConfigError if the system has none."""
    if not hybrid.fast:
        raise ConfigError(
            f"{hybrid.folder}: has neither an attention model for raw text nor a student, one of which "
            "--quality fast needs; smt-build --student adds one"
        )
    return hybrid.fast


def truecase_file(name: str) -> str:
    """The file name of a side's truecase model. `name`: source or target."""
    return f"truecase.{name}"


# ---- writing -----------------------------------------------------------------------------------------------


def write_system(folder: Path, config: HybridConfig) -> None:
    """Write system.json atomically, which turns a folder with all parts into a hybrid system.

    ConfigError as in `check_config`, and for a path that leads out of the folder; DataError for a missing
    part, and for a file that is not a moses.ini."""
    check_config(config)
    names = part_names(folder, config)
    entries = {name: asdict(manifest.entry(folder / name)) for name in names}
    content = {
        "format": FORMAT,
        "ini": config.ini,
        "glossary": config.glossary,
        "fast": config.fast,
        "search": config.search,
        **{name: {key: getattr(getattr(config, name), key) for key in TEXT} for name in SIDES},
        "files": entries,
    }
    files.write_text(folder / FILE, [json.dumps(content, indent=1, ensure_ascii=False)])


def check_config(config: HybridConfig) -> None:
    """ConfigError, with its name, for a setting that is unknown, out of range, or not allowed in a system."""
    for name in SIDES:
        side_config: SideConfig = getattr(config, name)
        settings.check(side_config, f"{name}.")
        pipeline.check_language(side_config, f"{name}.language")
        if side_config.escaped:
            raise ConfigError(
                f"{name}.escaped: a hybrid system reads raw text, which has no escapes; leave it out"
            )
    try:
        search_config = settings.changed(DecoderConfig(), config.search)
    except TypeError as error:
        raise ConfigError(f"search: {error}") from error
    if refused := config.search.keys() & NOT_SEARCH:
        raise ConfigError(f"search: {min(refused)} is not a setting of a system; leave it out")
    settings.check(search_config, "search.")


def part_names(folder: Path, config: HybridConfig) -> list[str]:
    """The sorted names of all files that translation needs, relative to the folder. DataError for a missing
    file, and if the ini is not a moses.ini; ConfigError for a path that leads out of the folder."""
    check_inside(config.ini, f"{folder / FILE}: ini")
    ini = moses_ini.read(str(folder / config.ini))
    names = {config.ini}
    for feature in ini.features:
        names |= {name for key in PATH_KEYS for name in feature_files(folder, feature, key)}
    if ini.weight_file:
        names.add(check_inside(ini.weight_file, f"{ini.path}: [{WEIGHT_FILE}]"))
    names |= {truecase_file(name) for name in SIDES if getattr(config, name).case == "truecase"}
    if config.glossary:
        names.add(check_inside(config.glossary, f"{folder / FILE}: glossary"))
    if config.fast:
        run = folder / check_inside(config.fast, f"{folder / FILE}: fast")
        names |= {path.relative_to(folder).as_posix() for path in model_files(run)}
    files.existing([folder / name for name in sorted(names)])
    return sorted(names)


def feature_files(folder: Path, feature: FeatureLine, key: str) -> list[str]:
    """Names of the files to which option `key` of a feature refers, relative to the system's folder: a single
    file, or those of a folder that `model_files` lists; none without the option. ConfigError for a path that
    leads out of the system's folder, DataError for one that does not exist."""
    if not (name := feature.options.get(key, "")):
        return []
    part = find_table(check_inside(name, f"{feature.location}: {key}"), str(folder))
    if part is None:
        raise DataError(f"{feature.location}: {name} is not in {folder}; put it there first")
    return [path.relative_to(folder).as_posix() for path in model_files(part)]


def check_inside(path: str, location: str) -> str:
    """Return `path`. ConfigError, beginning with `location`, if it is absolute or contains `..`."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ConfigError(
            f"{location}={path}: leads out of the system's folder, which could then not be moved; copy the "
            "file into the folder and name it relative to that"
        )
    return path


# ---- reading -----------------------------------------------------------------------------------------------


def read(folder: Path) -> Hybrid:
    """Read the hybrid system in a folder. Checks that all parts exist and have the right sizes, and compares
    the checksums of small ones.

    DataError, in one line, for a part that is missing or has changed, and for a system.json that is missing,
    damaged or of another version; ConfigError for settings as in `check_config`, and for the path of a part
    that leads out of the folder."""
    system_file = folder / FILE
    config, parts = parse_system_file(system_file)
    for name, entry in parts.items():
        check_part(folder, name, entry)
    source, target = (load_side(system_file, name, getattr(config, name), parts) for name in SIDES)
    return Hybrid(folder, config, source, target, parts)


def load_side(
    system_file: Path, name: str, config: SideConfig, parts: Mapping[str, ManifestEntry]
) -> TextSide:
    """Load the text processing of side `name`. `parts`: as system.json lists them. DataError for a missing or
    damaged truecase model; ConfigError for a segmentation that the language does not support."""
    if config.case == "truecase" and truecase_file(name) not in parts:
        raise damaged_error(system_file, f"{truecase_file(name)} is not in its list of files")
    return side.load(config, system_file.parent / truecase_file(name))


def verify(hybrid: Hybrid) -> None:
    """Compare the checksums of all parts. DataError for the first that differs."""
    for name, entry in hybrid.parts.items():
        if manifest.digest(hybrid.folder / name) != entry.sha256:
            raise changed_error(hybrid.folder / name)


def parse_system_file(system_file: Path) -> tuple[HybridConfig, dict[str, ManifestEntry]]:
    """Parse a system.json; returns the settings, and the parts by name. Raises the errors of `read`, except
    those for parts that are missing or have changed."""
    try:
        content = json.loads(files.read_small(system_file).decode("utf-8"))
    except OSError as error:
        raise DataError(
            f"{system_file}: cannot read: {error.strerror}; is this a folder of smt-build?"
        ) from error
    except (ValueError, RecursionError) as error:
        raise damaged_error(system_file, "it is not JSON") from error
    if not isinstance(content, dict) or "format" not in content:
        raise damaged_error(system_file, "it has no format")
    if content["format"] != FORMAT:
        raise DataError(
            f"{system_file}: format {shown(str(content['format']))}, this version reads {FORMAT!r}: train "
            "again, or use the version that wrote it"
        )
    try:
        config = HybridConfig(
            **{name: parse_side(content[name]) for name in SIDES},
            ini=check_text(content["ini"]),
            glossary=check_text(content["glossary"]),
            fast=check_inside(check_text(content.get("fast", "")), f"{system_file}: fast"),
            search=dict(content["search"]),
        )
        parts = {
            check_inside(check_text(name), f"{system_file}: files"): ManifestEntry(
                int(entry["size"]), check_text(entry["sha256"])
            )
            for name, entry in content["files"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged_error(system_file, f"missing or wrong: {error}") from error
    try:
        check_config(config)
    except ConfigError as error:
        raise ConfigError(f"{system_file}: {error}") from error
    fast = config.fast and f"{config.fast}/{VERSION_FILE}"
    for name in (config.ini, config.glossary, fast):
        if name and name not in parts:
            raise damaged_error(system_file, f"{name} is not in its list of files")
    return config, parts


def parse_side(content: Mapping[str, object]) -> SideConfig:
    """Parse the text settings of a side. KeyError for a missing or unknown setting, TypeError for a value of
    the wrong type."""
    if wrong := set(TEXT) ^ set(content):
        raise KeyError(min(wrong))
    config = settings.changed(SideConfig(), content)
    for key in TEXT:
        if type(getattr(config, key)) is not type(getattr(SideConfig(), key)):
            raise TypeError(key)
    return config


def check_text(value: object) -> str:
    """Return the value if it is a string, else raise TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def damaged_error(system_file: Path, why: str) -> DataError:
    """The error for a system.json that is damaged; `why` is the cause."""
    return DataError(f"{system_file}: damaged ({why}); copy the folder again")


def changed_error(path: Path) -> DataError:
    """The error for a part whose content has changed."""
    return DataError(
        f"{path}: not the file that {FILE} lists: it was changed or not copied whole; copy the folder again"
    )


def check_part(folder: Path, name: str, entry: ManifestEntry) -> None:
    """DataError for a part that is missing, is not a regular file, or has another size than `entry` says. The
    checksums of small files and of links that lead out of the folder are compared too."""
    path = folder / name
    files.check_regular(path, inside=False)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(
            f"{path}: {error.strerror}, but {FILE} lists it; was the folder copied whole?"
        ) from error
    use_checksum = size <= QUICK or files.leads_out(path)
    if size != entry.size or (use_checksum and manifest.digest(path) != entry.sha256):
        raise changed_error(path)
