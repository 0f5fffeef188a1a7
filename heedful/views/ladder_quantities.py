"""The quantities of a ladder: where in a row each stands, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from heedful.views.numbers import duration, exact, short


class Value(NamedTuple):
    """A number and, of several seeds, its standard deviation."""

    mean: float
    spread: float | None = None


@dataclass(frozen=True)
class Quantity:
    """A number of each row."""

    title: str
    path: tuple[str, ...]  # to the number, or to a mapping with its mean and spread
    form: Callable[[float], str] = exact
    drawn: bool = True  # as bars
    group: str = ""
    better: str = ""  # lower, or higher

    def value(self, row: Mapping[str, Any]) -> Value | None:
        """The number of a row, if it has one."""
        found: Any = row
        for key in self.path:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return Value(found["mean"], found.get("spread")) if found.get("mean") is not None else None
        return Value(found) if isinstance(found, int | float) else None

    def told(self, row: Mapping[str, Any]) -> str:
        """The number as text, with its spread; a dash where there is none."""
        value = self.value(row)
        if value is None:
            return "–"
        return self.form(value.mean) + (f" ±{self.form(value.spread)}" if value.spread is not None else "")

    def reason(self, row: Mapping[str, Any]) -> str | None:
        """Why a row has no such number."""
        found: Any = row
        for key in self.path:
            found = found.get(key) if isinstance(found, Mapping) else None
            if isinstance(found, Mapping) and "reason" in found:
                return str(found["reason"])
        return None


def quantities(rows: Sequence[Mapping[str, Any]]) -> list[Quantity]:
    """All that the rows may have, in the order of the table."""
    pairs = dict.fromkeys(name for row in rows for name in row["pairs"])
    tasks = dict.fromkeys(name for row in rows for name in row["tasks"])
    return [
        Quantity("parameters", ("size", "parameters"), short, drawn=False),
        Quantity("learning rate", ("learning_rate",), exact, drawn=False),
        Quantity("training time", ("training", "seconds"), duration, drawn=False),
        Quantity("steps", ("training", "steps"), drawn=False),
        Quantity("training, tokens/s", ("training", "tokens_per_second"), _whole, group="Cost", better="higher"),
        Quantity("embedding, words/s", ("speed", "words_per_second"), _whole, group="Cost", better="higher"),
        Quantity("peak memory", ("training", "peak_memory"), _megabytes, group="Cost", better="lower"),
        Quantity("perplexity a word", ("perplexity", "word_perplexity"), _four, group="Perplexity", better="lower"),
        Quantity("pseudo-perplexity", ("perplexity", "pseudo_perplexity"), _four, group="Perplexity", better="lower"),
        # An unknown token is easily guessed: a model with many of them looks better than it is.
        Quantity("unknown tokens of it", ("perplexity", "unknown"), _whole, drawn=False),
        *(
            Quantity(f"{name}, Spearman", ("pairs", name, "spearman"), _three, group="Words", better="higher")
            for name in pairs
        ),
        *(
            Quantity(_task_title(rows, name, way), ("tasks", name, way), _three, group="Tasks", better="higher")
            for name in tasks
            for way in ("frozen", "tuned")
        ),
    ]


def _task_title(rows: Sequence[Mapping[str, Any]], name: str, way: str) -> str:
    scores = (row["tasks"][name][way] or {} for row in rows if name in row["tasks"])
    score = next((found["score"] for found in scores if "score" in found), "")
    return f"{name} {way}{score and f', {score}'}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _three(value: float) -> str:
    return f"{value:.3f}"


def _four(value: float) -> str:
    return f"{value:,.1f}" if value >= 100 else f"{value:.4g}"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"
