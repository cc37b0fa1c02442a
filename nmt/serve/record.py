"""How requests went, as lines of JSON. They never have the text of a request."""

import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TextIO


@dataclass
class Record:
    """How a request went."""

    id: str
    client: str
    method: str
    path: str
    route: str = ""  # what handled it; empty: nothing
    status: int = 0
    seconds: float = 0.0
    engine: str = ""
    lines: int = 0
    error: str = ""  # of ours; the log has its traceback


class RequestLog:
    """Writes a line for each request, to stdout unless given another stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def write(self, record: Record) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = "error" if record.error else "warning" if record.status >= 500 else "info"
        content = {"time": now, "level": level, "event": "request", **asdict(record)}
        content["seconds"] = round(record.seconds, 6)
        stream = self.stream or sys.stdout
        with suppress(OSError, ValueError):  # closed, or a full disk: requests are answered all the same
            print(json.dumps(content), file=stream, flush=True)
