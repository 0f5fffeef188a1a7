"""What every verb is: a request's fields, what each input becomes, and the work that it comes to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from heedful.serving.fair_queue import Program, unchanged

LONGEST_WAIT_MS = 600_000


class Asked(BaseModel):
    """What every request may say."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    timing: bool = Field(False, description="Tell the milliseconds in the queue, of tokenizing and of computing.")
    timeout_ms: int | None = Field(
        None, ge=1, le=LONGEST_WAIT_MS, description="Give up after so many milliseconds; the server has a limit too."
    )


class AskedTexts(Asked):
    """Texts, and what every request may say."""

    inputs: list[str] = Field(min_length=1, description="Texts, each of which gets a result.")


TextOrPair = str | list[str]


class AskedPairs(Asked):
    """Texts or pairs of texts."""

    inputs: list[TextOrPair] = Field(min_length=1, description="Texts, or lists of two texts.")


A = TypeVar("A", bound=Asked)


@dataclass(frozen=True)
class Work:
    """What a request comes to: units that are computed, and how their results become an answer for each input."""

    program: Program | None = None  # None where nothing is computed
    units: Sequence[Any] = ()
    sizes: Sequence[int] = ()
    finish: Callable[[list[Any]], list[Any]] = field(default=unchanged)
    truncated: Sequence[int] = ()  # the inputs that were longer than the model and were cut


class Verb(ABC, Generic[A]):
    """Something that a model does."""

    name: ClassVar[str]
    about: ClassVar[str]  # a sentence
    asked: ClassVar[type[Asked]]

    def read(self, asked: A, given: Any) -> Any:
        """One input, checked; a HeedfulError is the error of this input alone."""
        return given

    @abstractmethod
    def work(self, asked: A, inputs: Sequence[Any]) -> Work:
        """The work for inputs that were read."""


def two_texts(given: TextOrPair) -> tuple[str, str | None]:
    """A text, or a pair of texts, as both sides."""
    from heedful.errors import HeedfulError

    if isinstance(given, str):
        return given, None
    if len(given) != 2:
        raise HeedfulError(f"a list of {len(given)} texts is no pair", remedy="give a text, or a list of two texts")
    return given[0], given[1]
