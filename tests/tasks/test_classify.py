"""Classification and regression: labels, windows over long texts, losses and scores."""

from __future__ import annotations

import pytest
import torch

from heedful.data.labelled.dataset import TextRow
from heedful.errors import HeedfulError
from heedful.tasks.classify import Classify
from heedful.tasks.regress import Regress
from heedful.text.tokenizer import Tokenizer

ROWS = [TextRow("the cat", None, "10", "a.tsv:2"), TextRow("the dog", None, "9", "a.tsv:3")]


def test_labels_are_sorted_as_numbers_where_they_are_numbers() -> None:
    assert Classify.fit(ROWS).labels == ("9", "10")
    assert Classify.fit([TextRow("a", None, "no"), TextRow("b", None, "maybe")]).labels == ("maybe", "no")


def test_the_order_of_labels_is_that_of_their_names_whatever_comes_first() -> None:
    labels = ("1", "1.0", "01", "nan", "inf", "infinity", "-2", "NaN", "x")
    orders = [labels[i:] + labels[:i] for i in range(len(labels))]
    found = {Classify.fit([TextRow("a", None, label) for label in order]).labels for order in orders}
    assert found == {("-2", "01", "1", "1.0", "NaN", "inf", "infinity", "nan", "x")}


def test_the_names_of_scores_are_told_beforehand() -> None:
    rows = [TextRow("", None, label) for label in "01"]
    task = Classify.fit(rows)
    assert tuple(task.score(rows, [{"label": "0"}, {"label": "1"}])) == Classify.scores
    assert tuple(Regress.fit(rows).score(rows, [{"value": 0.0}, {"value": 2.0}])) == Regress.scores
    assert set(Regress.errors) < set(Regress.scores)


def test_labels_that_mostly_occur_once_are_no_labels() -> None:
    texts = [TextRow("", None, f"text {n}", f"a.tsv:{n + 2}") for n in range(30)]
    with pytest.raises(HeedfulError, match="30 different labels in 30 rows"):
        Classify.fit(texts)
    assert len(Classify.fit(texts * 2).labels) == 30


def test_a_single_label_is_refused() -> None:
    with pytest.raises(HeedfulError, match="only the label '9'"):
        Classify.fit(ROWS[1:])


def test_a_label_that_only_dev_has_is_told_and_counts_as_an_error() -> None:
    task = Classify(labels=("9", "10"))
    dev = [*ROWS, TextRow("the cat", None, "11", "dev.tsv:7"), TextRow("a cat", None, "11", "dev.tsv:8")]
    task.check(dev)
    (remark,) = task.unseen(dev)
    assert (remark.count, remark.places) == (2, ("dev.tsv:7", "dev.tsv:8")) and "'11'" in remark.what
    said = [{"label": label} for label in ("10", "9", "9", "10")]
    assert task.score(dev, said)["accuracy"] == 0.5
    assert task.score(dev, said)["f1"] == pytest.approx(2 / 3)  # one false alarm for the label 10
    three = Classify(labels=("9", "10", "12")).score(dev, said)
    assert three["f1"] == pytest.approx((2 / 3 + 2 / 3 + 0 + 0) / 4)
    table, by_label = task.details(dev, said)
    assert list(table.rows) == [("9", 1, 0), ("10", 0, 1), ("11 (not in training)", 1, 1)]
    assert by_label.rows[-1] == ("11", 0.0, 0.0, 0.0, 2)


def test_many_strange_labels_are_one_remark() -> None:
    strange = [TextRow("", None, f"label {n}", f"dev.tsv:{n}") for n in range(30)]
    (remark,) = Classify.fit(ROWS).unseen([*ROWS, *strange])
    assert remark.count == 30 and "'label 4' and 25 others" in remark.what and len(remark.places) == 3


def test_rows_of_which_no_label_is_known_are_refused_with_a_place() -> None:
    with pytest.raises(HeedfulError, match=r"'11'(.|\n)*`label`") as caught:
        Classify.fit(ROWS).check([TextRow("the cat", None, "11", "dev.tsv:7")])
    assert caught.value.where == "dev.tsv:7"


def test_what_is_no_number_is_refused_with_its_place() -> None:
    with pytest.raises(HeedfulError, match="'high' is not a number") as caught:
        Regress.fit([TextRow("a", None, "0.5"), TextRow("b", None, "high", "sts.tsv:9")])
    assert caught.value.where == "sts.tsv:9"


def test_a_row_is_encoded_as_the_tokenizer_does(tiny_tokenizer: Tokenizer) -> None:
    task = Classify.fit([TextRow("the cat", "the dog", "0"), TextRow("love", "the cat sees", "1")])
    items = task.encode([TextRow("the cat", "the dog", "1")], tiny_tokenizer)
    whole = tiny_tokenizer.encode("the cat", "the dog")
    assert (items[0].windows[0].ids, items[0].windows[0].segments) == (whole.ids, whole.type_ids)
    assert items[0].target == (1.0,)


@pytest.mark.parametrize("pair", [None, "the dog sees the cat"])
def test_with_a_stride_nothing_of_a_long_text_is_lost(tiny_tokenizer: Tokenizer, pair: str | None) -> None:
    words = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
    row = TextRow(words, None, "0") if pair is None else TextRow(pair, words, "0")
    task = Classify(max_length=16, stride=4, labels=("0", "1"))
    items = task.encode([row], tiny_tokenizer)
    assert len(items) > 1
    assert all(len(item.windows[0].ids) <= 16 for item in items)
    seen = {token for item in items for token in item.windows[0].ids}
    assert set(tiny_tokenizer.encode(words).ids) <= seen


def test_a_text_that_fits_is_one_window_with_or_without_a_stride(tiny_tokenizer: Tokenizer) -> None:
    rows = [TextRow("the cat", "the dog"), TextRow("love", "un")]
    plain, windows = (Classify(stride=s, labels=("0", "1")).encode(rows, tiny_tokenizer) for s in (0, 32))
    assert plain == windows


def test_the_logits_of_several_windows_are_averaged(tiny_tokenizer: Tokenizer) -> None:
    task = Classify(max_length=8, stride=3, labels=("0", "1"))
    rows = [TextRow("a b c d e f g h i j"), TextRow("the cat")]
    items = task.encode(rows, tiny_tokenizer)
    outputs = [[torch.tensor([[float(n), 0.0]])] for n in range(len(items))]
    long, short = task.decode(torch.nn.Identity(), rows, items, outputs)
    count = len(items) - 1
    expected = torch.tensor([sum(range(count)) / count, 0.0]).softmax(-1)
    assert long["probability"] == pytest.approx(expected.max().item())
    assert short["probabilities"]["0"] == pytest.approx(torch.tensor([float(count), 0.0]).softmax(-1)[0].item())


def test_scores_of_two_labels_and_of_more() -> None:
    rows = [TextRow("", None, label) for label in "0011"]
    said = [{"label": label} for label in "0111"]
    scores = Classify(labels=("0", "1")).score(rows, said)
    assert scores["accuracy"] == 0.75
    assert scores["f1"] == pytest.approx(0.8)  # of the label 1
    three = Classify(labels=("0", "1", "2")).score(rows, said)
    assert three["f1"] == pytest.approx((2 / 3 + 0.8 + 0) / 3)


def test_regression_scores() -> None:
    rows = [TextRow("", None, str(n)) for n in (1, 2, 3)]
    scores = Regress().score(rows, [{"value": 2.0}, {"value": 4.0}, {"value": 6.0}])
    assert scores["pearson"] == pytest.approx(1)
    assert scores["spearman"] == pytest.approx(1)
    assert scores["squared_error"] == pytest.approx((1 + 4 + 9) / 3)


def test_pairs_and_single_texts_do_not_mix(tiny_tokenizer: Tokenizer) -> None:
    with pytest.raises(HeedfulError, match="some inputs are pairs"):
        Regress().encode([TextRow("a"), TextRow("a", "b")], tiny_tokenizer)


@pytest.mark.parametrize("given", ["a text", ("a text", "b"), {"text": "a text", "pair": "b"}, {"text": "a text"}])
def test_inputs_from_python(given: object) -> None:
    assert Classify.example(given).text == "a text"


def test_an_input_that_is_not_understood() -> None:
    with pytest.raises(HeedfulError, match="int"):
        Classify.example(3)
