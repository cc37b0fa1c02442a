"""Options of smt-tune and smt-tune-nbest for the tuner and its settings."""

import argparse
from dataclasses import fields, is_dataclass

from nmt import plugins
from nmt.cli import options
from nmt.cli.arguments import add_setting, add_settings, parse_settings
from nmt.config import settings
from nmt.errors import ConfigError
from smt_bridge.tuning.registry import TUNERS, TuneConfig
from smt_bridge.tuning.tuner import Tuner


def add_tuner(parser: argparse.ArgumentParser) -> None:
    """Add --method, --seed, and an option for each setting of a tuner; tuners may share settings. ConfigError
    for a plugin's class that is no dataclass, or has a setting of every tuner."""
    add_settings(parser, TuneConfig, "method", "seed")
    added: set[str] = set()
    for name, tuner in TUNERS.items():
        if problem := wrong_settings(tuner):
            location = plugins.class_location(tuner)
            raise ConfigError(f"{plugins.VARIABLE}: {location}: tuner {name!r}: {problem}")
        group = parser.add_argument_group(f"settings of {name}")
        for item in (item for item in fields(tuner) if item.name not in added):
            add_setting(group, tuner, item.name)
            added.add(item.name)


def wrong_settings(tuner: type) -> str:
    """Describe what is wrong with the settings of a tuner's class; empty if nothing is."""
    if not is_dataclass(tuner):
        return f"class {tuner.__qualname__} lacks @dataclass"
    common = {item.name for item in fields(TuneConfig)} & {item.name for item in fields(tuner)}
    return f"rename its setting {min(common)}: smt-tune has one of this name" if common else ""


def refuse_unused(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """ConfigError for an option that only tuners other than the one of --method have."""
    own = {item.name for item in fields(TUNERS[args.method])}
    for name, tuner in TUNERS.items():
        others = [item.name for item in fields(tuner) if item.name not in own]
        options.refuse_alone(parser, args, others, f"--method {name}")


def parse_tuner(args: argparse.Namespace) -> Tuner:
    """Make the tuner that the options name, with its settings. ConfigError for a value out of range."""
    tuner = parse_settings(TUNERS[args.method], args)
    settings.check(tuner)
    return tuner
