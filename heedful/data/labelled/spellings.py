"""Labels that differ only by case or spaces, which are mostly one label written in several ways."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from heedful.data.labelled.dataset import MultiLabelRow, TextRow

E = TypeVar("E")


def folded(label: str) -> str:
    """What labels have in common that differ only by case or spaces."""
    return "".join(label.casefold().split())


def spelled_alike(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """The groups of labels that differ only by case or spaces, in each the most frequent first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for label, _ in Counter(labels).most_common():
        groups[folded(label)].append(label)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def spelling_of(labels: Iterable[str]) -> dict[str, str]:
    """The spelling to use of each label, by what it is folded to: the most frequent one."""
    spelling: dict[str, str] = {}
    for label, _ in Counter(labels).most_common():
        spelling.setdefault(folded(label), label)
    return spelling


def respelled(example: E, spelling: Mapping[str, str]) -> E:
    """The example with its labels in this spelling; one that is not known stays as it is."""
    if isinstance(example, MultiLabelRow) and example.labels is not None:
        labels = (spelling.get(folded(label), label) for label in example.labels)
        return replace(example, labels=tuple(dict.fromkeys(labels)))
    if isinstance(example, TextRow) and example.label is not None:
        return replace(example, label=spelling.get(folded(example.label), example.label))
    return example


def labels_of(examples: Iterable[object]) -> list[str]:
    """All labels of texts, each as often as it stands there."""
    found: list[str] = []
    for example in examples:
        if isinstance(example, MultiLabelRow):
            found += example.labels or ()
        elif isinstance(example, TextRow) and example.label is not None:
            found.append(example.label)
    return found
