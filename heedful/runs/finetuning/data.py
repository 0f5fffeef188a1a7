"""The labelled data of a fine-tuning run: read, bad rows dealt with, labels spelled alike, dev perhaps split off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heedful.data.labelled.dataset import PLACES, Columns, Dataset, Remark
from heedful.data.labelled.dev_split import share_of, split_off
from heedful.data.labelled.inspection import copies, oddities_of
from heedful.data.labelled.samples import sample_of
from heedful.data.labelled.spellings import labels_of, respelled, spelling_of
from heedful.errors import HeedfulError
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.tasks.task import Task
from heedful.text.encodings import reading_as

NO_TEXT = "examples with an empty text, left out"


@dataclass(frozen=True)
class LabelledData:
    """What a run trains on and what it is judged by."""

    train: Dataset[Any]
    dev: Dataset[Any] | None

    @classmethod
    def of(cls, settings: FinetuningSettings, kind: type[Task[Any]]) -> LabelledData:
        """Read all of it as the settings say."""
        share = share_of(settings.dev)
        with reading_as(settings.encoding):
            train = _read(settings, kind, settings.train)
            dev = _read(settings, kind, settings.dev) if settings.dev is not None and share is None else None
        if settings.limit:
            train = replace(train, examples=train.examples[: settings.limit])
        if settings.merge_labels:
            spelling = _spelling(train.examples)
            train, dev = _merged(train, spelling), dev and _merged(dev, spelling)
        if share is not None:
            kept, split = split_off(train.examples, share, settings.seed)
            return cls(replace(train, examples=kept), Dataset(split))
        return cls(train, dev)

    def remarks(self, task: str) -> list[str]:
        """What was odd about the files, and what `heedful inspect` would say of the examples."""
        train = (*self.train.remarks, *_oddities(self.train.examples, task))
        found = [f"train: {remark}" for remark in train]
        if self.dev is None:
            return found
        dev = (*self.dev.remarks, *_oddities(self.dev.examples, task))
        shared = copies(_samples(self.train.examples), _samples(self.dev.examples))
        return [*found, *(f"dev: {remark}" for remark in dev), *map(str, shared)]


def columns_of(settings: FinetuningSettings) -> Columns:
    """The columns that were named."""
    return Columns(settings.text, settings.pair, settings.label, settings.separator)


def _read(settings: FinetuningSettings, kind: type[Task[Any]], data: Any) -> Dataset[Any]:
    found = kind.read_data(data, columns_of(settings), bad_rows=settings.bad_rows)
    empty = [example for example in found.examples if getattr(example, "empty", False)]
    if settings.bad_rows != "skip" or not empty:
        return found
    remark = Remark(NO_TEXT, len(empty), tuple(example.where for example in empty[:PLACES]))
    kept = [example for example in found.examples if not getattr(example, "empty", False)]
    if not kept:
        raise HeedfulError("every text is empty", where=empty[0].where, remedy="give rows with a text")
    return replace(found, examples=kept, remarks=(*found.remarks, remark))


def _spelling(examples: Sequence[Any]) -> dict[str, str]:
    labels = labels_of(examples)
    if not labels:
        raise HeedfulError("`merge_labels` is for the labels of texts", remedy="leave it out")
    return spelling_of(labels)


def _merged(data: Dataset[Any], spelling: Mapping[str, str]) -> Dataset[Any]:
    merged = [respelled(example, spelling) for example in data.examples]
    changed = [new.where for new, old in zip(merged, data.examples, strict=True) if new != old]
    remark = Remark("labels spelled as the most frequent of their like", len(changed), tuple(changed[:PLACES]))
    return replace(data, examples=merged, remarks=(*data.remarks, remark)) if changed else data


def _oddities(examples: Sequence[Any], task: str) -> tuple[Remark, ...]:
    return oddities_of(_samples(examples), task)


def _samples(examples: Sequence[Any]) -> list[Any]:
    """The examples as any task has them; a task of one's own may have others, of which nothing is said."""
    try:
        return [sample_of(example) for example in examples]
    except TypeError:
        return []
