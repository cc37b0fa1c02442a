"""The server as a process."""

import socket

import pytest

from nmt.errors import ConfigError
from nmt.serve import server
from nmt.serve.config import ServeConfig


def test_any_free_port_of_the_loopback_address() -> None:
    with server.bind(ServeConfig(port=0)) as listening:
        port = listening.getsockname()[1]
        assert server.url_of(listening) == f"http://127.0.0.1:{port}/"
        with pytest.raises(ConfigError, match=f"--host 127.0.0.1 --port {port}: Address already in use"):
            server.bind(ServeConfig(port=port))


def test_answers_are_sent_without_delay() -> None:
    """asyncio sets TCP_NODELAY on connections of such a socket only; without it answers take 40 ms more."""
    with server.bind(ServeConfig(port=0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("host", ["256.1.1.1.1", "x" * 300])
def test_an_address_that_is_none(host: str) -> None:
    with pytest.raises(ConfigError, match="--host"):
        server.bind(ServeConfig(host=host, port=0))
