"""The messages that other processes write to files, shown by this one: a line there is a line here."""

import logging
from pathlib import Path

log = logging.getLogger(__name__)


class Followed:
    """The log files of a folder, from where they end now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read = {path: path.stat().st_size for path in self.paths()}

    def paths(self) -> list[Path]:
        """The files, some of which may come later."""
        return sorted(self.folder.glob("*.log"))

    def show(self) -> None:
        """Log what is new: `[time] LEVEL message` of `attention.log` as `attention: message`."""
        for path in self.paths():
            with open(path, "rb") as stream:
                stream.seek(self.read.get(path, 0))
                new = stream.read()
            whole = new[: new.rfind(b"\n") + 1]
            self.read[path] = self.read.get(path, 0) + len(whole)
            for line in whole.decode("utf-8", "replace").split("\n")[:-1]:
                level, _, message = line.partition("] ")[2].partition(" ")
                number = logging.getLevelNamesMapping().get(level, logging.INFO)
                log.log(number, "%s: %s", path.stem, message or line)
