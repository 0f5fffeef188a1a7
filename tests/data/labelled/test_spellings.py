"""Labels that differ only by case or spaces."""

from __future__ import annotations

from heedful.data.labelled.dataset import MultiLabelRow, Question, TextRow
from heedful.data.labelled.spellings import labels_of, respelled, spelled_alike, spelling_of

LABELS = ["Billing", "billing", "billing", "Bil ling", "refund", "STRASSE", "straße"]


def test_groups_begin_with_the_most_frequent() -> None:
    assert spelled_alike(LABELS) == [("billing", "Billing", "Bil ling"), ("STRASSE", "straße")]
    assert spelled_alike(["a", "b"]) == []


def test_labels_take_the_most_frequent_spelling() -> None:
    spelling = spelling_of(LABELS)
    assert respelled(TextRow("t", label="BILLING"), spelling).label == "billing"
    assert respelled(TextRow("t", label="other"), spelling).label == "other"
    several = MultiLabelRow("t", labels=("Billing", "Refund", "billing"))
    assert respelled(several, spelling).labels == ("billing", "refund")
    question = Question("1", "q", "c")
    assert respelled(question, spelling) is question
    assert labels_of([several, TextRow("t", label="x"), question]) == ["Billing", "Refund", "billing", "x"]
