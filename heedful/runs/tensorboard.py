"""The events of a run as event files for TensorBoard; its package is the extra `tensorboard`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError
from heedful.training.events import Evaluated, Event, Progress

FOLDER = "tensorboard"
# As often as metrics.jsonl gets a line.
STEPS_BETWEEN = 10


class EventFiles:
    """Writes what a run tells into its folder; give `hear` to whoever tells it."""

    def __init__(self, folder: Path, writer_of: Callable[..., Any]) -> None:
        self._folder, self._writer_of = folder, writer_of
        self._writer: Any = None

    def hear(self, event: Event) -> None:
        """Write one event."""
        if isinstance(event, Progress) and (event.step % STEPS_BETWEEN == 0 or event.step == event.steps):
            others = ("learning_rate", "gradient_norm", "tokens_per_second")
            self._write("losses", event.losses, event.step)
            self._write("training", {name: getattr(event, name) for name in others}, event.step)
        elif isinstance(event, Evaluated):
            self._write("evaluation", event.metrics, event.step)

    def close(self) -> None:
        """Bring everything to the disk."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, group: str, values: Mapping[str, float], step: int) -> None:
        if self._writer is None:  # what an earlier session has told of later steps is forgotten
            self._writer = self._writer_of(str(self._folder), purge_step=step)
        for name, value in values.items():
            self._writer.add_scalar(f"{group}/{name}", value, step)


@contextmanager
def event_files(run: Path) -> Iterator[EventFiles]:
    """Event files in a run's folder, from its first step on; those of earlier sessions stay."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        what, remedy = "TensorBoard's package is not installed", "pip install 'heedful[tensorboard]'"
        raise HeedfulError(what, remedy=remedy) from error
    files = EventFiles(run / FOLDER, SummaryWriter)
    try:
        yield files
    finally:
        files.close()
