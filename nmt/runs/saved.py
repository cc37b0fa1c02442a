"""What all trained models have in common."""

from pathlib import Path

from nmt.runs import directory


class Saved:
    """A model with the weights of one update of a run."""

    directory: Path  # of the run
    step: int  # the weights are those after this many updates

    @property
    def name(self) -> str:
        """How results name the model that made them."""
        return f"{self.directory.name}@{self.step}"

    def files(self) -> list[Path]:
        """The files that results depend on."""
        return directory.result_files(self.directory, self.step)
