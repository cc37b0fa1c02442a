"""An authority and a certificate, made by openssl as docs/cluster.md says, and where Dask finds them."""

import subprocess
from pathlib import Path

COMMANDS = """
openssl req -x509 -newkey rsa:3072 -nodes -days 365 -keyout ca.key -out ca.pem -subj /CN=our-cluster
openssl req -newkey rsa:3072 -nodes -keyout host.key -out host.csr -subj /CN=host
openssl x509 -req -in host.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 365 -out host.pem
"""


def make(folder: Path) -> dict[str, str]:
    """Write them into a folder; the variables that let schedulers, workers and clients find them."""
    folder.mkdir()
    for command in COMMANDS.strip().split("\n"):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    where = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(folder / "ca.pem")}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        where[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = str(folder / "host.pem")
        where[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = str(folder / "host.key")
    return where
