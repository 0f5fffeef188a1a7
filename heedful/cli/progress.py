"""Progress bars on standard error, for everything that takes more than a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str, total: int | None, unit: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with speed and time left; call it with how many are done, and how many of them by this attempt."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from heedful.cli.console import ProgressConsole

    columns = (
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.completed:,.0f}" + (f"/{total:,}" if total is not None else "") + f" {unit}"),
        TextColumn("{task.fields[speed]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    console = ProgressConsole()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(title, total=total, speed="", left="")

        def advance(done: int, new: int) -> None:
            seconds = bar.tasks[0].elapsed or 0.0
            speed = new / seconds if seconds else 0.0
            left = f"{clock((total - done) / speed)} left" if total is not None and speed else ""
            bar.update(task, completed=done, speed=f"{speed:,.0f} {unit}/s" if speed else "", left=left)

        yield advance


@contextmanager
def counting_bar(title: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """A bar that is told how many more are done."""
    done = 0
    with progress_bar(title, total, unit) as advance:

        def more(count: int) -> None:
            nonlocal done
            done += count
            advance(done, done)

        yield more


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
