"""Labels that training never showed: told, counted as errors of the model, and shown beside those it knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from heedful.data.labelled.dataset import PLACES, Remark
from heedful.errors import HeedfulError
from heedful.tasks.label_metrics import confusion
from heedful.tasks.task import Detail

NAMED = 5  # so many strange labels are named in a remark


def unseen_labels(labelled: Iterable[tuple[str, str]], known: Iterable[str], noun: str) -> tuple[Remark, ...]:
    """A remark about the labels, given with their places, that are none of the known ones."""
    seen = set(known)
    strange = [(label, where) for label, where in labelled if label not in seen]
    if not strange:
        return ()
    names = list(dict.fromkeys(repr(label) for label, _ in strange))
    listed = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} others" if len(names) > NAMED else "")
    what = f"with a {noun} that training never showed ({listed}), counted as errors"
    places = dict.fromkeys(where for _, where in strange if where)
    return (Remark(what, len(strange), tuple(islice(places, PLACES))),)


def refuse_strangers(labelled: Sequence[tuple[str, str]], known: Sequence[str]) -> None:
    """Refuse examples of which not one has a known label: they were made for something else, or read wrongly."""
    if labelled and not {label for label, _ in labelled} & set(known):
        label, where = labelled[0]
        raise HeedfulError(
            f"the label {label!r} does not occur in the training data, and so it is with all others here",
            where=where or None,
            remedy=f"the labels are {', '.join(known[:20])}; name the column of the labels with `label`",
        )


def all_labels(known: Sequence[str], truth: Iterable[str]) -> list[str]:
    """The known labels, and after them those that are true of some example although nobody knows them."""
    return list(dict.fromkeys([*known, *sorted(set(truth) - set(known))]))


def confusion_table(truth: Sequence[str], guess: Sequence[str], known: Sequence[str], noun: str) -> Detail:
    """Which labels are taken for which; one that training never showed has a row, for it is never guessed."""
    every = all_labels(known, truth)
    rows = zip(every, confusion(truth, guess, every)[:, : len(known)].tolist(), strict=True)
    return Detail(
        f"true {noun} by rows, guessed by columns",
        ("", *known),
        [(label if label in known else f"{label} (not in training)", *counts) for label, counts in rows],
    )
