"""What a training run shows on the terminal: a line that moves, evaluations and notes above it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn

from heedful.cli.console import ProgressConsole
from heedful.cli.progress import clock
from heedful.training.events import Ended, Evaluated, Event, Note
from heedful.training.events import Progress as Step

# Where nobody watches the line move (a log file), a line now and then is enough.
SECONDS_BETWEEN_LINES = 15.0


class TrainingDisplay:
    """Shows the events of a run; give its `show` to the run as `on_event`."""

    def __init__(self) -> None:
        self.console = ProgressConsole()
        columns = (
            TextColumn("step {task.completed:,.0f}/{task.total:,.0f}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
        )
        self._bar = Progress(*columns, console=self.console, disable=not self.console.is_terminal)
        self._task = self._bar.add_task("", total=1, text="")
        self._last_line = 0.0

    @property
    def watched(self) -> bool:
        """Whether somebody sees the line move: in a terminal or a notebook."""
        return self.console.is_terminal

    def __enter__(self) -> TrainingDisplay:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, Note):
            self._print(event.text)
        elif isinstance(event, Evaluated):
            numbers = "  ".join(f"{name} {value:.4g}" for name, value in event.metrics.items())
            best = "  (best so far)" if event.best else ""
            lines = [f"after step {event.step:,}: {numbers}{best}", *map(_example, event.examples)]
            self._print("\n".join(lines))
        elif isinstance(event, Ended):
            self._end(event)
        else:
            self._step(event)

    def _step(self, event: Step) -> None:
        text = describe(event)
        self._bar.update(self._task, completed=event.step, total=event.steps, text=text)
        due = time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES
        if not self.console.is_terminal and (due or event.step == event.steps):
            self._last_line = time.monotonic()
            self._print(f"step {event.step:,}/{event.steps:,}  {text}")

    def _end(self, event: Ended) -> None:
        """How the run ended and where everything is, below the bar."""
        self._bar.stop()
        lines = [f"{event.outcome}, {clock(event.seconds)} in all", f"report: {event.report}"]
        if event.outcome.finished:
            lines.append(f"model:  {event.model}")
        else:
            lines.append("go on with the same command and --resume")
        lines += [f"remark: {remark}" for remark in event.remarks]
        self._print("\n".join(lines))

    def _print(self, text: str) -> None:
        """Plain text; a file has no width, so its lines stay whole."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=not self.console.is_terminal)


def _example(example: Mapping[str, Any]) -> str:
    return "    " + "  |  ".join(f"{name}: {_shown(value)}" for name, value in example.items())


def _shown(value: Any) -> str:
    """Values as they are, and lists of words with their probabilities as `word 41%`."""
    if isinstance(value, list):
        return ", ".join(f"{word} {share:.0%}" for word, share in value)
    return str(value)


def describe(event: Step) -> str:
    """Losses, speed, padding and the time left of a step."""
    losses = "  ".join(f"{name} {value:.3f}" for name, value in event.losses.items())
    speed = f"{event.tokens_per_second:,.0f} tokens/s"
    return f"{losses}  {speed}  padding saved {event.padding:.0%}  {clock(event.seconds_left)} left"
