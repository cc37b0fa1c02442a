"""Who may use a server: the token that clients send, and their addresses."""

import base64
import binascii
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import stat
from collections.abc import Sequence

from nmt.errors import ConfigError
from nmt.io import files

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MIN_TOKEN_LENGTH = 16  # characters
HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/@]+)(?::[0-9]*)?")

log = logging.getLogger(__name__)


class Token:
    """A secret; comparing it takes a time that reveals nothing about it."""

    def __init__(self, secret: str) -> None:
        self.digest = hash_secret(secret)

    def matches(self, secret: str) -> bool:
        return hmac.compare_digest(self.digest, hash_secret(secret))

    def allows(self, authorization: str) -> bool:
        """Does a header `Authorization` carry the secret, as `Bearer TOKEN` or as the password of `Basic`?"""
        kind, _, value = authorization.partition(" ")
        if kind.lower() == "basic":
            try:
                value = base64.b64decode(value, validate=True).decode("utf-8").partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return False
        elif kind.lower() != "bearer":
            return False
        return self.matches(value.strip())


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def read_token(path: str) -> Token:
    """Read the token from a file of one line.

    ConfigError for one that is too short or that every user of the machine can read, DataError for a file
    that cannot be read.
    """
    check_private(path)
    lines = [line.strip() for line in files.read_lines(path)]
    secret = lines[0] if lines else ""
    if len(secret) < MIN_TOKEN_LENGTH or any(lines[1:]):
        raise ConfigError(
            f"{path}: expected one line of {MIN_TOKEN_LENGTH} characters or more; make one with: "
            f"(umask 077; head -c 24 /dev/urandom | base64 > {path})"
        )
    return Token(secret)


def check_private(path: str) -> None:
    """Refuse a file of this user that everybody can read or change, as ssh refuses such a key: ConfigError.

    A warning if only a group can, or if the file is another user's, such as a secret of a container.
    """
    try:
        status = os.stat(path)
    except OSError:
        return  # reading it will report that
    if not stat.S_ISREG(status.st_mode) or not status.st_mode & 0o077:
        return
    if status.st_mode & 0o007 and status.st_uid == os.geteuid():
        raise ConfigError(f"{path}: other users can read this token; chmod 600 {path}, or make a new one")
    log.warning("%s: other users can read this token; chmod 600 it", path)


# ---- addresses ---------------------------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    """Does an address, or the name in a header `Host`, stand for this machine alone?"""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def client_key(address: str) -> str:
    """The key under which a client is counted: its address, or for IPv6 its network of 64 bits."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))


def parse_networks(addresses: Sequence[str]) -> list[Network]:
    """Parse addresses such as 127.0.0.1 and 10.0.0.0/8. ConfigError for anything else."""
    try:
        return [ipaddress.ip_network(address, strict=False) for address in addresses]
    except ValueError as error:
        raise ConfigError(f"--proxy: {error}; expected addresses such as 127.0.0.1 or 10.0.0.0/8") from error


def in_networks(address: str, within: Sequence[Network]) -> bool:
    """Does an address belong to one of these networks?"""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in within)


def check_address(host: str, address: str, token: Token | None) -> None:
    """ConfigError for a server without a token that others can reach. `address`: what `host` resolves to."""
    if token is None and not is_loopback(address):
        raise ConfigError(
            f"--host {host}: other machines can reach this address, and anybody there could use the server; "
            "give --token FILE, or listen on 127.0.0.1"
        )


def header_host(header: str) -> str:
    """The host in a header `Host`: localhost:8080 -> localhost, [::1]:8080 -> [::1]; else ""."""
    match = HOST.fullmatch(header)
    return match[1] if match else ""


def origin_site(origin: str) -> str:
    """Host and port of an origin in the form of a header `Host`; empty for `null`."""
    return origin.partition("://")[2].lower()
