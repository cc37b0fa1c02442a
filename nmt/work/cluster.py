"""The connection to a Dask cluster: whose address is safe, and whose workers compute as this process does.

Dask's messages are pickled, and whoever reaches a scheduler can run code on its workers and in its clients.
So addresses other than the loopback need TLS, with certificates on both sides.
"""

import importlib
import json
import logging
import ssl
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

SLURM = "slurm:"  # what comes before the settings of jobs
SECONDS = 10  # that a scheduler is waited for
FIRST_WORKER = 60  # seconds that its first worker is waited for, which may just have been started


@dataclass(frozen=True)
class Host:
    """What the numbers that a worker computes depend on."""

    version: str  # ours
    processor: str  # and torch


def connect(where: str) -> "Client":
    """`where`: the address of a scheduler, the scheduler.json that it wrote, or `slurm:` and the settings of
    jobs, which are started (`Client.cluster`). ConfigError for an address that is not safe; UserError where
    there is no scheduler, where TLS fails, and without `distributed`."""
    try:
        from distributed import Client, Security
    except ModuleNotFoundError as error:
        raise UserError("--cluster needs more libraries: pip install 'nmt-smt[cluster]'") from error
    for name in ("distributed", "distributed.client"):  # what goes wrong is said by us, in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    address = "" if where.startswith(SLURM) else parse_address(where)
    try:
        if not address:
            slurm = importlib.import_module("nmt.work.slurm")
            return Client(slurm.start_cluster(where.removeprefix(SLURM)), set_as_default=False)
        check_safe(address)
        security = Security(require_encryption=address.startswith("tls:"))
        return Client(address, timeout=SECONDS, security=security, set_as_default=False)
    except (OSError, TypeError, ValueError, RuntimeError, ssl.SSLError) as error:
        raise UserError(f"--cluster {where}: {connection_failure(error)}") from error


def connection_failure(error: BaseException) -> str:
    """Why there is no connection, in one line."""
    if isinstance(error, TypeError) or "ssl_context" in str(error):
        return (
            "no certificates: set distributed.comm.tls.ca-file, and client.cert and client.key below it, in "
            "Dask's configuration (docs/cluster.md)"
        )
    if isinstance(error, FileNotFoundError):
        return (
            "a certificate that Dask's configuration names below distributed.comm.tls is not there "
            "(docs/cluster.md)"
        )
    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, ssl.SSLError):
            return f"TLS: {chain.reason or chain}; is the certificate signed by the authority of both sides?"
        chain = chain.__cause__ or chain.__context__
    return f"no scheduler answers within {SECONDS} s; is `dask scheduler` running there?"


def parse_address(where: str) -> str:
    """protocol://host:port, from a scheduler.json too. ConfigError for anything else."""
    if where.endswith(".json"):
        try:
            found = json.loads(Path(where).read_text(encoding="utf-8"))
            where = found["address"] + ""
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"--cluster {where}: not a scheduler.json (of `dask scheduler --scheduler-file FILE`)"
            ) from error
    address = where if "://" in where else f"tcp://{where}"
    try:
        parts = urlsplit(address)
        sound = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
    except ValueError:
        sound = None
    if not sound:
        raise ConfigError(
            f"--cluster {where}: expected tls://HOST:PORT, tcp://127.0.0.1:PORT, a scheduler.json or "
            "slurm:FILE"
        )
    return address


def check_safe(address: str) -> None:
    """ConfigError for an address other than the loopback without TLS."""
    parts = urlsplit(address)
    if parts.scheme != "tls" and not is_loopback(parts.hostname or ""):
        raise ConfigError(
            f"--cluster {address}: whoever reaches a scheduler without TLS runs code on its workers; start "
            "scheduler and workers with certificates and use tls:// (docs/cluster.md)"
        )


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def difference(found: Host, expected: Host, mixed: bool) -> str:
    """Why a worker cannot take part; empty where it can."""
    if found.version != expected.version:
        return f"has version {found.version} of nmt-smt, this is {expected.version}; install the same one"
    if found != expected and not mixed:
        return (
            f"computes on {found.processor}, this is {expected.processor}: numbers would differ in their "
            "last digits; --mixed-workers allows it"
        )
    return ""


def check_workers(found: Mapping[str, Host | BaseException], expected: Host, mixed: bool) -> None:
    """ConfigError for the first worker that cannot take part. `found`: by address, or why it could not be
    asked."""
    for address, host in sorted(found.items()):
        if isinstance(host, ImportError | AttributeError):  # the function that is called there is missing
            raise ConfigError(
                f"worker {address}: nmt-smt is not installed there, or is another version than "
                f"{expected.version}, which this is ({host})"
            )
        if isinstance(host, BaseException):
            raise ConfigError(f"worker {address}: {host}")
        if what := difference(host, expected, mixed):
            raise ConfigError(f"worker {address}: {what}")
        if host != expected:
            log.warning("worker %s: computes on %s, this is %s", address, host.processor, expected.processor)
