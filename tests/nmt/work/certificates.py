"""Certificates for clusters, as docs/cluster.md makes them."""

import subprocess
from pathlib import Path

DAYS = "-days 2"


def authority(folder: Path, name: str = "ca") -> None:
    """name.pem and name.key in the folder."""
    openssl(
        folder,
        f"req -x509 -newkey rsa:2048 -nodes {DAYS} -keyout {name}.key -out {name}.pem -subj /CN={name}",
    )


def host(folder: Path, name: str = "host", ca: str = "ca") -> None:
    """name.pem and name.key, signed by the authority."""
    openssl(folder, f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}")
    openssl(
        folder,
        f"x509 -req -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial {DAYS} -out {name}.pem",
    )


def openssl(folder: Path, arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def options(folder: Path, name: str = "host", ca: str = "ca") -> list[str]:
    """Of `dask scheduler` and `dask worker`."""
    return [
        "--tls-ca-file", f"{folder}/{ca}.pem", "--tls-cert", f"{folder}/{name}.pem",
        "--tls-key", f"{folder}/{name}.key",
    ]  # fmt: skip


def configuration(folder: Path, name: str = "host", ca: str = "ca") -> dict[str, object]:
    """Dask's, of the command, and of a scheduler and workers that it starts."""
    found: dict[str, object] = {"distributed.comm.tls.ca-file": f"{folder}/{ca}.pem"}
    for role in ("client", "scheduler", "worker"):
        found[f"distributed.comm.tls.{role}.cert"] = f"{folder}/{name}.pem"
        found[f"distributed.comm.tls.{role}.key"] = f"{folder}/{name}.key"
    return found
