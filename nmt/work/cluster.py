"""Connects to a Dask cluster; checks that its address is safe and that its workers compute as this process
does.

Dask's messages are pickled: anyone who can reach a scheduler can run code on its workers and in its clients.
So addresses other than the loopback need TLS, with certificates on both sides.
"""

import importlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nmt.errors import ConfigError, UserError

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger(__name__)

SLURM = "slurm:"  # prefix of the path of a file with the settings of Slurm jobs
SECONDS = 10  # seconds to wait for a scheduler
FIRST_WORKER = 60  # seconds to wait for its first worker, which may have been started just now


@dataclass(frozen=True)
class Host:
    """Properties of a worker on which its results depend."""

    version: str  # of nmt-smt
    processor: str  # name of the processor, and version of torch


def connect(target: str) -> "Client":
    """Connect to a scheduler. `target`: its address, the path of its scheduler.json, or `slurm:FILE`, which
    starts a scheduler (`Client.cluster`) and Slurm jobs. Turns off the logging of `distributed`.

    ConfigError for an unsafe address or wrong settings in FILE; UserError if no scheduler answers, TLS fails,
    FILE cannot be read, or Slurm or a package is missing."""
    try:
        from distributed import Client, Security
    except ModuleNotFoundError as error:
        raise UserError("--cluster needs more libraries: pip install 'nmt-smt[cluster]'") from error
    for name in ("distributed", "distributed.client"):  # our own error says the cause in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    address = "" if target.startswith(SLURM) else parse_address(target)
    try:
        if not address:
            slurm = importlib.import_module("nmt.work.slurm")
            return Client(slurm.start_cluster(target.removeprefix(SLURM)), set_as_default=False)
        check_safe(address)
        security = Security(require_encryption=address.startswith("tls:"))
        return Client(address, timeout=SECONDS, security=security, set_as_default=False)
    except (OSError, TypeError, ValueError, RuntimeError) as error:  # an ssl.SSLError is an OSError
        raise UserError(f"--cluster {target}: {connection_failure(error)}") from error


def connection_failure(error: BaseException) -> str:
    """Describe the cause of a failed connection in one line."""
    if isinstance(error, TypeError) or "ssl_context" in str(error):
        return (
            "no certificates: set distributed.comm.tls.ca-file, and client.cert and client.key below it, in "
            "Dask's configuration (docs/cluster.md)"
        )
    if isinstance(error, FileNotFoundError):
        return (
            "a certificate named in Dask's configuration, below distributed.comm.tls, is missing "
            "(docs/cluster.md)"
        )
    chain: BaseException | None = error
    while chain is not None:
        # ssl itself is not imported: the start of every command that may use a cluster would pay for it
        if any(kind.__name__ == "SSLError" for kind in type(chain).__mro__):
            cause = getattr(chain, "reason", None) or chain
            return f"TLS: {cause}; is the certificate signed by the authority of both sides?"
        chain = chain.__cause__ or chain.__context__
    return f"no scheduler answers within {SECONDS} s; is `dask scheduler` running there?"


def parse_address(target: str) -> str:
    """Parse PROTOCOL://HOST:PORT or HOST:PORT, or read the address in a scheduler.json. Returns it with its
    protocol, tcp or tls. ConfigError for anything else."""
    if target.endswith(".json"):
        try:
            scheduler = json.loads(Path(target).read_text(encoding="utf-8"))
            target = scheduler["address"] + ""  # TypeError unless it is a string
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"--cluster {target}: not a scheduler.json (of `dask scheduler --scheduler-file FILE`)"
            ) from error
    address = target if "://" in target else f"tcp://{target}"
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:
        is_valid = None
    if not is_valid:
        raise ConfigError(
            f"--cluster {target}: expected tls://HOST:PORT, tcp://127.0.0.1:PORT, a scheduler.json or "
            "slurm:FILE"
        )
    return address


def check_safe(address: str) -> None:
    """ConfigError for an address that is neither the loopback nor uses TLS."""
    parts = urlsplit(address)
    if parts.scheme != "tls" and not is_loopback(parts.hostname or ""):
        raise ConfigError(
            f"--cluster {address}: without TLS, anybody who reaches the scheduler can run code on its "
            "workers; start scheduler and workers with certificates and use tls:// (docs/cluster.md)"
        )


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def difference(host: Host, expected: Host, mixed: bool) -> str:
    """Describe why a worker cannot take part; empty if it can. `expected`: the host of the command; `mixed`:
    whether other processors are allowed."""
    if host.version != expected.version:
        return f"has version {host.version} of nmt-smt, not {expected.version}; install the same version"
    if host != expected and not mixed:
        return (
            f"computes on {host.processor}, not {expected.processor}: numbers would differ in their last "
            "digits; --mixed-workers allows this"
        )
    return ""


def check_workers(hosts: Mapping[str, Host | BaseException], expected: Host, mixed: bool) -> None:
    """ConfigError for the first worker that cannot take part; logs a warning for each that computes on
    another processor. `hosts`: by address, the properties of each worker, or the error that querying it
    raised; `expected`, `mixed`: as in `difference`."""
    for address, host in sorted(hosts.items()):
        if isinstance(host, ImportError | AttributeError):  # the queried function is missing there
            raise ConfigError(f"worker {address}: nmt-smt {expected.version} is not installed there ({host})")
        if isinstance(host, BaseException):
            raise ConfigError(f"worker {address}: {host}")
        if reason := difference(host, expected, mixed):
            raise ConfigError(f"worker {address}: {reason}")
        if host != expected:
            log.warning("worker %s: computes on %s, not %s", address, host.processor, expected.processor)
