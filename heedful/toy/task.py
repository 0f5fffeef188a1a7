"""What a toy task is: rows made in groups that a bag of words cannot tell apart, a solver and a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from heedful.toy.world import LANGUAGES, Word


class Row(Protocol):
    """One example: what a solver may see, and what it should say."""

    @property
    def inputs(self) -> tuple[Any, ...]: ...

    @property
    def answer(self) -> Any: ...


R = TypeVar("R", bound=Row)


@dataclass(frozen=True)
class Task(Generic[R]):
    """A task of the toy world.

    `group` makes a few rows with the same words and every possible answer, so whatever looks at the words alone is
    right as often as chance; `solve` answers from the inputs of a row and reaches 100 %.
    """

    name: str
    format: str
    metric: str
    chance: float
    group: Callable[[Random, str, Sequence[Word]], list[R]]
    solve: Callable[..., Any]
    baseline: Callable[[Sequence[R], Sequence[R]], float]
    languages: tuple[str, ...] = LANGUAGES

    def generate(self, rng: Random, count: int, language: str, names: Sequence[Word]) -> list[R]:
        """`count` rows about people of those names, in random order."""
        rows: list[R] = []
        while len(rows) < count:
            rows += self.group(rng, language, names)
        del rows[count:]
        rng.shuffle(rows)
        return rows

    def solved(self, rows: Sequence[R]) -> float:
        """The share of `rows` that the rule-based solver gets exactly right."""
        return sum(bool(self.solve(*row.inputs) == row.answer) for row in rows) / len(rows)
