"""Tokens and addresses."""

import base64
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.serve import access
from nmt.serve.access import Token

SECRET = "correct horse battery"


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (f"Bearer {SECRET}", True),
        (f"bearer  {SECRET} ", True),
        (basic(f"anybody:{SECRET}"), True),
        (basic(f"{SECRET}:"), False),
        (SECRET, False),
        ("", False),
        ("Bearer", False),
        (f"Bearer {SECRET}x", False),
        (f"Digest {SECRET}", False),
        ("Basic %%%", False),
        ("Basic /w==", False),
        ("Bearer \udcff", False),
    ],
)
def test_who_is_allowed(header: str, allowed: bool) -> None:
    assert Token(SECRET).allows(header) == allowed


def test_the_file_of_a_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    assert access.read_token(str(path)).matches(SECRET)
    for text in ("", "short\n", f"{SECRET}\n{SECRET}\n"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="expected one line of 16 characters or more"):
            access.read_token(str(path))
    with pytest.raises(DataError):
        access.read_token(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("mode", "refused", "warned"),
    [
        (0o600, False, False),
        (0o400, False, False),
        (0o640, False, True),
        (0o644, True, False),
        (0o602, True, False),
    ],
)
def test_a_token_that_others_can_read(
    mode: int, refused: bool, warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a key of ssh; what the message says to do helps."""
    path = tmp_path / "token"
    path.write_text(SECRET)
    path.chmod(mode)
    if refused:
        with pytest.raises(ConfigError, match=r"token: other users can read this token; chmod 600 .*token"):
            access.read_token(str(path))
        path.chmod(0o600)
    assert access.read_token(str(path)).matches(SECRET)
    assert ("other users can read" in caplog.text) == warned


def test_the_token_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A secret of a container is read-only and belongs to root: chmod is not for this user to do."""
    path = tmp_path / "token"
    path.write_text(SECRET)
    path.chmod(0o444)
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    assert access.read_token(str(path)).matches(SECRET) and "other users can read" in caplog.text


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org", False),
        ("", False),
    ],
)
def test_what_is_this_machine_alone(host: str, expected: bool) -> None:
    assert access.is_loopback(host) == expected


def test_others_need_a_token() -> None:
    with pytest.raises(ConfigError, match=r"--host 0\.0\.0\.0: other machines can reach this address"):
        access.check_address("0.0.0.0", "0.0.0.0", None)
    access.check_address("0.0.0.0", "0.0.0.0", Token(SECRET))
    access.check_address("localhost", "127.0.0.1", None)


def test_the_name_in_the_host_header() -> None:
    assert [access.header_host(one) for one in ("a:80", "a", "[::1]:80", "[::1]", "")] == [
        "a",
        "a",
        "[::1]",
        "[::1]",
        "",
    ]


def test_networks_of_proxies() -> None:
    within = access.parse_networks(["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"])
    assert all(access.in_networks(address, within) for address in ("127.0.0.1", "10.9.9.9", "2001:db8::1"))
    assert not any(access.in_networks(address, within) for address in ("127.0.0.2", "::1", "", "testclient"))
    with pytest.raises(ConfigError, match="--proxy"):
        access.parse_networks(["proxy.example.org"])


def test_a_client_is_its_address_or_its_network_of_ipv6() -> None:
    assert access.client_key("192.0.2.1") == access.client_key("::ffff:192.0.2.1") == "192.0.2.1"
    assert access.client_key("2001:db8:1:2::1") == access.client_key("2001:db8:1:2:ffff::2%eth0")
    assert access.client_key("2001:db8:1:2::1") != access.client_key("2001:db8:1:3::1")
    assert access.client_key("testclient") == "testclient"
