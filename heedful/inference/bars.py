"""What shows how far a long piece of work is: whoever wants to see it hands in a bar, and without one nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# Title, how many there will be if that is known, and what they are called -> called with how many are done, and how
# many of them by this attempt.
Bar = Callable[[str, int | None, str], AbstractContextManager[Callable[[int, int], None]]]


@contextmanager
def no_bar(title: str, total: int | None, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show nothing."""
    yield lambda done, new: None
