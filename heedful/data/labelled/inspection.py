"""What to know about labelled data before a model is trained on it: lengths, balance, repeats, leaks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import Encoding

from heedful.data.labelled.choice_rows import read_choices
from heedful.data.labelled.conll import read_tagged
from heedful.data.labelled.dataset import PLACES, Columns, Dataset, Remark
from heedful.data.labelled.multi_label_rows import read_multi_label_rows
from heedful.data.labelled.samples import Sample, sample_of
from heedful.data.labelled.spellings import spelled_alike
from heedful.data.labelled.squad import read_questions
from heedful.data.labelled.task_guess import guess_task
from heedful.data.labelled.text_rows import read_text_rows
from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer

CHUNK = 500
# Numbers are labels up to so many different ones; beyond, or with decimals, they are a scale.
MOST_NUMBERED_LABELS = 20

Reader = Callable[[Path, Columns, bool], Dataset[Any]]
READERS: Mapping[str, Reader] = {
    "classify": read_text_rows,
    "regress": read_text_rows,
    "multilabel": read_multi_label_rows,
    "tag": lambda path, columns, labelled: read_tagged(path, labelled, columns),
    "answer": lambda path, columns, labelled: read_questions(path, labelled),
    "choose": lambda path, columns, labelled: read_choices(path, labelled),
}


@dataclass(frozen=True)
class Lengths:
    """How long examples are, in one unit; the histogram's buckets are first, last and how many."""

    unit: str
    least: int
    median: int
    p95: int
    most: int
    histogram: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Tokens:
    """What a tokenizer makes of the examples: the length of each with its special tokens, and how much is [UNK]."""

    lengths: list[int]
    pieces: int
    unknown: int


@dataclass(frozen=True)
class Scale:
    """The numbers of a regression."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used, and why."""

    where: str
    what: str


@dataclass(frozen=True)
class Findings:
    """What there is to say about one file."""

    file: str
    task: str
    examples: int
    lengths: tuple[Lengths, ...]
    labels: Mapping[str, int]  # how many of each, the most frequent first; entities by type for tags
    scale: Scale | None  # instead of labels, for a regression
    limit: int | None  # tokens the model can take
    unknown_share: float | None  # of the pieces
    remarks: tuple[Remark, ...]
    bad: tuple[BadRow, ...] = ()  # all of them


def read_samples(
    path: Path, task: str | None, columns: Columns, labelled: bool
) -> tuple[str, list[Sample], Dataset[Any]]:
    """The task of a file, guessed unless it is given, its examples as any task has them, and what was read.

    Rows that cannot be used are among what was read; a file that has no others is refused.
    """
    kind = task or guess_task(path)
    dataset = READERS[kind](path, columns, labelled)
    if not dataset.examples:
        dataset.settled()
    samples = [sample_of(example) for example in dataset.examples]
    if task is None and kind == "classify" and looks_like_regression(samples):
        kind = "regress"
    if not labelled:
        samples = [replace(sample, label=None, counted=()) for sample in samples]
    elif kind == "regress":
        samples = [replace(sample, counted=()) for sample in samples]
    return kind, samples, dataset


def looks_like_regression(samples: Sequence[Sample]) -> bool:
    """Whether all labels are numbers, and some have decimals or there are very many."""
    numbers = {_number(sample.label) for sample in samples}
    if None in numbers:
        return False
    return len(numbers) > MOST_NUMBERED_LABELS or any(number and number % 1 for number in numbers)


def count_tokens(
    samples: Sequence[Sample], tokenizer: Tokenizer, on_progress: Callable[[int], object] = lambda done: None
) -> Tokens:
    """Tokenize everything, uncut; the longest of several choices counts."""
    lengths: list[int] = []
    pieces = unknown = 0
    rest = iter(samples)
    while chunk := list(islice(rest, CHUNK)):
        inputs = [one for sample in chunk for one in sample.inputs]
        frame = tokenizer.library.num_special_tokens_to_add(is_pair=isinstance(inputs[0], tuple))
        encodings = _encoded(inputs, tokenizer)
        sizes = [sum(number is not None for number in encoding.sequence_ids) for encoding in encodings]
        pieces += sum(sizes)
        unknown += sum(encoding.ids.count(tokenizer.unk_id) for encoding in encodings)
        each = iter(sizes)
        lengths += [frame + max(islice(each, len(sample.inputs))) for sample in chunk]
        on_progress(len(lengths))
    return Tokens(lengths, pieces, unknown)


def _encoded(inputs: list[Any], tokenizer: Tokenizer) -> list[Encoding]:
    """The encodings of inputs of one kind, with special tokens or without."""
    if isinstance(inputs[0], list):
        return tokenizer.encode_words(inputs)
    return tokenizer.encode_batch(inputs, offsets=False)


def findings(
    path: Path,
    task: str,
    samples: Sequence[Sample],
    remarks: Iterable[Remark],
    tokens: Tokens | None,
    limit: int | None,
    bad: Iterable[HeedfulError] = (),
) -> Findings:
    """Put together what there is to say about a file; lengths are in characters and words without `tokens`."""
    if tokens is None:
        measures = {"characters": [s.characters for s in samples], "words": [s.words for s in samples]}
    else:
        measures = {"tokens": tokens.lengths}
    counts = Counter(label for sample in samples for label in sample.counted)
    return Findings(
        file=str(path),
        task=task,
        examples=len(samples),
        lengths=tuple(summary(unit, values) for unit, values in measures.items()),
        labels=dict(counts.most_common()),
        scale=_scale(samples) if task == "regress" else None,
        limit=limit if tokens else None,
        unknown_share=tokens.unknown / max(tokens.pieces, 1) if tokens else None,
        remarks=(*remarks, *oddities_of(samples, task), *_too_long(samples, tokens, limit)),
        bad=tuple(BadRow(str(error.where), error.what) for error in bad),
    )


def summary(unit: str, values: Sequence[int]) -> Lengths:
    """Smallest, median, 95th percentile (each a value that occurs), greatest, and counts in doubling buckets."""
    ordered = sorted(values)
    buckets = Counter(value.bit_length() for value in values)
    histogram = tuple(
        (2 ** (bits - 1) if bits else 0, 2**bits - 1, buckets[bits]) for bits in range(min(buckets), max(buckets) + 1)
    )
    median, p95 = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95))
    return Lengths(unit, ordered[0], median, p95, ordered[-1], histogram)


def leaks(train: Sequence[Sample], dev: Sequence[Sample]) -> tuple[Remark, ...]:
    """What dev has in common with train, and labels that train never shows."""
    known = {label for sample in train for label in sample.counted}
    strange = [sample.where for sample in dev if not known.issuperset(sample.counted)]
    unseen = _remarks({"dev examples with a label that the training data never has": strange})
    return (*copies(train, dev), *unseen)


def copies(train: Sequence[Sample], dev: Sequence[Sample]) -> tuple[Remark, ...]:
    """What dev has in common with train, which flatters every score."""
    first = {sample.key: sample.where for sample in reversed(train)}
    about = {sample.passage: sample.where for sample in reversed(train) if sample.passage}
    same = [f"{sample.where} = {first[sample.key]}" for sample in dev if sample.key in first]
    return _remarks(
        {
            "dev examples that stand in the training data too": same,
            "dev examples about a text that the training data is about too": [
                f"{sample.where} = {about[sample.passage]}"
                for sample in dev
                if sample.passage in about and sample.key not in first
            ],
        }
    )


def oddities_of(samples: Sequence[Sample], task: str) -> tuple[Remark, ...]:
    """What is odd about examples beside each other: repeats, contradictions, empty texts, labels spelled alike."""
    first: dict[tuple[str, ...], Sample] = {}
    repeated: list[str] = []
    contradicted: list[str] = []
    for sample in samples:
        earlier = first.setdefault(sample.key, sample)
        if earlier is not sample:
            places = contradicted if earlier.label != sample.label else repeated
            places.append(f"{sample.where} = {earlier.where}")
    odd = {
        "repeated examples": repeated,
        "repeated examples with another label": contradicted,
        "examples with an empty text": [sample.where for sample in samples if sample.empty],
    }
    odd |= _spelled_alike(samples)
    if task == "regress":
        odd["labels that are not numbers"] = [s.where for s in samples if s.label and _number(s.label) is None]
    return _remarks(odd)


def _too_long(samples: Sequence[Sample], tokens: Tokens | None, limit: int | None) -> tuple[Remark, ...]:
    if tokens is None or limit is None:
        return ()
    long = [sample.where for sample, length in zip(samples, tokens.lengths, strict=True) if length > limit]
    return _remarks({f"examples longer than {limit} tokens, which would be cut or read in windows": long})


def _spelled_alike(samples: Sequence[Sample]) -> dict[str, list[str]]:
    """The places of labels that differ from a more frequent one only by case or spaces, by what they are."""
    found: dict[str, list[str]] = {}
    for usual, *others in spelled_alike(label for sample in samples for label in sample.counted):
        what = f"labels {', '.join(map(repr, others))} that differ from {usual!r} only by case or spaces"
        found[what] = [sample.where for sample in samples if set(others) & set(sample.counted)]
    return found


def _remarks(places: Mapping[str, Sequence[str]]) -> tuple[Remark, ...]:
    return tuple(Remark(what, len(found), tuple(found[:PLACES])) for what, found in places.items() if found)


def _scale(samples: Iterable[Sample]) -> Scale | None:
    numbers = [number for sample in samples if (number := _number(sample.label)) is not None]
    return Scale(min(numbers), math.fsum(numbers) / len(numbers), max(numbers)) if numbers else None


def _number(label: str | None) -> float | None:
    try:
        number = float(label or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
