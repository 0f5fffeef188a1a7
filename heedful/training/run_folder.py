"""The folder of a run, which one process at a time may train in.

config.toml       what the run was told, and is held to when it is resumed
metrics.jsonl     losses, rates and evaluations by step
timing.json       where the time went
checkpoints/      step-000123/ …
model/            the finished model
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from heedful.atomic import make_folder
from heedful.config import from_mapping, read_toml_values, toml_values, write_toml_values
from heedful.errors import HeedfulError
from heedful.file_lock import try_lock
from heedful.training.changes import Change, changes_of, in_words, refused
from heedful.training.checkpoint import Checkpoints
from heedful.training.training_config import TrainingConfig

P = TypeVar("P")
SETTINGS = "settings"  # the table of config.toml that holds what the run was told


class RunFolder:
    """The places in a run's folder, and the lock on it; `settings` are what a new run there was told, as TOML."""

    def __init__(self, path: str | Path, settings: Mapping[str, Any] | None = None) -> None:
        self.path, self.settings = Path(path), settings or {}
        self.config = self.path / "config.toml"
        self.metrics = self.path / "metrics.jsonl"
        self.timing = self.path / "timing.json"
        self.model = self.path / "model"
        self.checkpoints = Checkpoints(self.path / "checkpoints")
        self._lock: IO[str] | None = None
        self._claimed: Any = None

    def holds_run(self) -> bool:
        """Whether a run was ever started here; settings that somebody has written down are not yet one."""
        return self.stored() is not None or bool(self.checkpoints.steps())

    def stored(self) -> dict[str, Any] | None:
        """What a run that was started here had worked out."""
        values = self._values()
        values.pop(SETTINGS, None)
        return values or None

    def stored_as(self, kind: type[P]) -> P | None:
        """The same as the dataclass it was."""
        stored = self.stored()
        return None if stored is None else from_mapping(kind, stored, self.config)

    def stored_settings(self) -> dict[str, Any] | None:
        """What a run here was told; None where there is none, or one of a version that did not keep it."""
        values = self._values()
        settings: dict[str, Any] | None = values.get(SETTINGS)
        return settings

    def make(self) -> None:
        """Make the folder, unless it is there; a place that nothing can be written to is refused."""
        with self._writable():
            make_folder(self.path)

    def keep_settings(self) -> None:
        """Write down what the run is told, so that one who is stopped before the first step need not say it again."""
        if self.settings and not self.holds_run():
            self.make()
            write_toml_values({SETTINGS: dict(self.settings)}, self.config)

    def check_resumable(self, resume: bool) -> None:
        """Refuse a folder that holds a run unless it is to be gone on with."""
        if self.holds_run() and not resume:
            raise HeedfulError(
                "there is a run in this folder already",
                where=self.path,
                remedy="go on with it by `resume`, or name another folder",
            )

    def claim(self, config: Any, resume: bool) -> str | None:
        """Take the folder for this process: an old run is gone on with, or refused without `resume`.

        Gives what there is to tell of a run that shall be longer than it was, or look up more or less often.
        """
        self._take_lock()
        self._claimed = config
        self.check_resumable(resume)
        stored = self.stored_as(type(config)) if self.holds_run() else None
        changes = [] if stored is None else changes_of(stored, config)
        if changes:
            self._check(changes, getattr(config, "training", config))
        if stored is None or changes:
            self._write_config(config)
        self.checkpoints.sweep()
        return in_words(changes) if changes else None

    def put_back(self) -> bool:
        """Make the folder anew if somebody removed it under the process that claimed it; gives whether that was so."""
        if self.config.exists():
            return False
        self.release()
        self._take_lock()
        self._write_config(self._claimed)
        return True

    def release(self) -> None:
        """Let other processes have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _values(self) -> dict[str, Any]:
        """All that config.toml says; nothing where there is no such file, but never an empty one."""
        if not self.config.exists():
            return {}
        values = read_toml_values(self.config)
        if not values:
            remedy = "put the file back, or start a new run in another folder"
            raise HeedfulError(f"{self.config.name} says nothing", where=self.config, remedy=remedy)
        return values

    def _write_config(self, config: Any) -> None:
        told = {SETTINGS: dict(self.settings)} if self.settings else {}
        write_toml_values({**toml_values(config), **told}, self.config)

    @contextmanager
    def _writable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = f"cannot write here: {error.strerror}"
            raise HeedfulError(what, where=self.path, remedy="name another folder") from error

    def _take_lock(self) -> None:
        with self._writable():
            make_folder(self.path)
            self._lock = (self.path / ".lock").open("a+", encoding="ascii")
        if not try_lock(self._lock):
            self._lock.seek(0)
            holder = self._lock.read().strip() or "unknown"
            self.release()
            raise HeedfulError(
                f"another process (number {holder}) is training in this folder",
                where=self.path,
                remedy="wait for it or stop it, or name another folder",
            )
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()

    def _check(self, changes: Sequence[Change], training: TrainingConfig) -> None:
        """A resumed run is the run that was started: beside its length, all that it is told must agree."""
        if others := refused(changes, training.schedule):
            raise HeedfulError(
                f"the run was started with other settings: {'; '.join(map(str, others))}",
                where=self.config,
                remedy="resume with the settings of config.toml, or start a new run in another folder",
            )
        done = max(self.checkpoints.steps(), default=0)
        if training.steps < done:
            raise HeedfulError(
                f"the run has taken {done:,} steps already, and is to have {training.steps:,} in all",
                where=self.path,
                remedy="give a greater number: what is asked for counts from the start of the run",
            )
