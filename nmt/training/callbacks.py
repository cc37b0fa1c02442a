"""Callbacks of parts of a model while the model is trained."""


class Callback:
    """A part of a model, a `torch.nn.Module`, that the training loop tells of its progress. The methods here
    do nothing."""

    def on_start(self, epoch_updates: int) -> None:
        """Called before the first update of each start of a training; `epoch_updates`: updates of an
        epoch."""

    def on_update(self, step: int) -> None:
        """Called after each update, with its number from 1."""
