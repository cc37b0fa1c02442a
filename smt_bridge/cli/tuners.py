"""The choice of a tuner and its settings: options that smt-tune and smt-tune-nbest share."""

import argparse
from dataclasses import fields

from nmt.cli.arguments import add_setting, parse_settings
from nmt.config import settings
from smt_bridge.tuning.registry import TUNERS, TuneConfig
from smt_bridge.tuning.tuner import Tuner


def add_tuner(parser: argparse.ArgumentParser) -> None:
    """--method, --seed, and an option for each setting of a tuner; tuners may share one."""
    add_setting(parser, TuneConfig, "method")
    add_setting(parser, TuneConfig, "seed")
    known: set[str] = set()
    for name, tuner in TUNERS.items():
        group = parser.add_argument_group(f"settings of {name}")
        for item in (item for item in fields(tuner) if item.name not in known):
            add_setting(group, tuner, item.name)
            known.add(item.name)


def tuner_of(args: argparse.Namespace) -> Tuner:
    """The tuner that the options ask for. ConfigError for a value out of range."""
    tuner = parse_settings(TUNERS[args.method], args)
    settings.check(tuner)
    return tuner
