"""Scores of answers: cases worked by hand from the official rules, and brute force for runs, bags and thresholds."""

from __future__ import annotations

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.labelled.dataset import Answer, Question
from heedful.errors import HeedfulError
from heedful.tasks.answer_metrics import (
    best_threshold,
    cmrc_exact,
    cmrc_f1,
    cmrc_tokens,
    exact,
    f1,
    normalised,
    scores,
)

WORDS = st.lists(st.sampled_from(["cat", "dog", "The", "a", "sat,", "1999", "-"]), max_size=6).map(" ".join)
CHINESE = st.text("中国美人，《》ab 1.", max_size=12)


def question(*answers: str, number: int = 0) -> Question:
    return Question(str(number), "?", "", tuple(Answer(text, 0) for text in answers))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Eiffel\tTower!", "eiffel tower"),
        ("an apple a day", "apple day"),
        ("Theatre and Anna", "theatre and anna"),  # only whole words are articles
        ("a-b", "ab"),  # punctuation goes before articles do, and leaves no gap
        ("A.", ""),
        ("$1,000.50", "100050"),
        ("“quoted”", "“quoted”"),  # only ASCII punctuation
        ("Łódź", "łódź"),
        ("don't", "dont"),
        ("", ""),
    ],
)
def test_squads_normalisation(text: str, expected: str) -> None:
    assert normalised(text) == expected


@given(st.text(st.sampled_from([*string.ascii_letters, *string.punctuation, *" \n\t中É"])))
def test_normalising_again_changes_nothing(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


def test_exact_match_is_any_of_the_truths_normalised() -> None:
    assert exact(["Paris", "the City of Light"], "City of Light.") == 1.0
    assert exact(["Paris"], "Paris, France") == 0.0


@pytest.mark.parametrize(
    ("truths", "guess", "expected"),
    [
        (["the cat sat"], "a cat", 2 * 1 * 0.5 / 1.5),  # P 1, R 1/2
        (["cat cat dog"], "cat cat cat", 2 / 3),  # a bag: the third cat is too many
        (["dog", "big dog"], "big dog", 1.0),  # the best truth counts
        (["dog"], "cat", 0.0),
        ([], "", 1.0),  # no answer, and none given
        ([], "dog", 0.0),
        ([], "the", 1.0),  # of which nothing is left
        (["dog"], "", 0.0),
        (["the"], "", 1.0),  # 2.0's script leaves out truths that are empty
        (["the", "dog"], "", 0.0),
    ],
)
def test_squads_f1_and_the_rule_of_no_answer(truths: list[str], guess: str, expected: float) -> None:
    assert f1(truths, guess) == pytest.approx(expected)


@given(st.lists(WORDS, max_size=3), WORDS)
def test_f1_by_striking_out_words_one_by_one(truths: list[str], guess: str) -> None:
    """The words of the guess that find a partner, each word of the truth serving once."""

    def overlap(truth: list[str], said: list[str]) -> float:
        left = list(truth)
        common = 0
        for word in said:
            if word in left:
                left.remove(word)
                common += 1
        if not truth or not said:
            return float(not truth and not said)
        if not common:
            return 0.0
        precision, recall = common / len(said), common / len(truth)
        return 2 * precision * recall / (precision + recall)

    kept = [normalised(truth).split() for truth in truths if normalised(truth)] or [[]]
    assert f1(truths, guess) == pytest.approx(max(overlap(truth, normalised(guess).split()) for truth in kept))
    assert exact(truths, guess) == float(any(truth == normalised(guess).split() for truth in kept))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("《红楼梦》", ["红", "楼", "梦"]),
        ("使用Python 3.10版", ["使", "用", "python", "3.10", "版"]),
        ("1,000人，50%", ["1,000", "人", "50", "%"]),
        ("AT&T公司(美国)", ["at", "&", "t", "公", "司", "(", "美", "国", ")"]),
        ("up-to-date", ["uptodate"]),  # removed punctuation leaves no gap
        ("等……", ["等", "……"]),  # the script means to remove it but compares single characters
        ("the end.", ["the", "end", "."]),
        ("U.S. army", ["u.s.", "army"]),
        ("It's; don't", ["it", "'s", ";", "do", "n't"]),
        ("red, green", ["red", ",", "green"]),
        ("㐀龥", ["㐀", "龥"]),  # the second is the last character of the script's range
        ("，。", []),
    ],
)
def test_cmrcs_mixed_segmentation(text: str, expected: list[str]) -> None:
    assert cmrc_tokens(text) == expected


def test_cmrc_removes_the_punctuation_of_its_list_and_no_other() -> None:
    removed = [
        "-",
        ":",
        "_",
        "*",
        "^",
        "/",
        "\\",
        "~",
        "`",
        "+",
        "=",
        "，",
        "。",
        "：",
        "？",
        "！",
        "“",
        "”",
        "；",
        "’",
    ]
    removed += ["《", "》", "·", "、", "「", "」", "（", "）", "－", "～", "『", "』"]
    assert [mark for mark in removed if cmrc_tokens(mark) or not cmrc_exact(["北京"], f"北{mark}京")] == []
    kept = [*",.()[]{}<>;?!@#$%&'|", "…", "—", "‘", "【", "】", "．"]
    assert [mark for mark in kept if cmrc_tokens(mark) != [mark] or cmrc_exact(["北京"], f"北{mark}京")] == []


def test_cmrcs_exact_match_ignores_its_punctuation_and_case() -> None:
    assert cmrc_exact(["《Harry》与、朋友"], "harry与朋友。") == 1.0
    assert cmrc_exact(["北京"], "北京市") == 0.0
    assert cmrc_exact(["a b"], "ab") == 0.0  # white space stays
    assert cmrc_exact([], "") == 1.0 and cmrc_exact([], "北京") == 0.0


@pytest.mark.parametrize(
    ("truths", "guess", "expected"),
    [
        (["北京大学"], "北京", 2 * 1 * 0.5 / 1.5),
        (["中国北京"], "北京中国", 0.5),  # one run only: the order counts
        (["一九九八年"], "一九九九年", 0.6),  # the run 一九九 of five and five
        (["天津", "天津市"], "天津市。", 1.0),
        (["天津"], "上海", 0.0),
        (["，"], "，", 0.0),  # as the script has it: no tokens, no run
        (["天津"], "", 0.0),
        ([], "", 1.0),
        ([], "天津", 0.0),
    ],
)
def test_cmrcs_f1(truths: list[str], guess: str, expected: float) -> None:
    assert cmrc_f1(truths, guess) == pytest.approx(expected)


def longest_run(a: list[str], b: list[str]) -> int:
    """The longest list that stands in both as it is, among all stretches of the first."""
    stretches = [a[i:j] for i in range(len(a)) for j in range(i + 1, len(a) + 1)]
    return max((len(run) for run in stretches if any(b[k : k + len(run)] == run for k in range(len(b)))), default=0)


@given(CHINESE, CHINESE)
def test_cmrcs_f1_by_trying_every_run(truth: str, guess: str) -> None:
    a, b = cmrc_tokens(truth), cmrc_tokens(guess)
    run = longest_run(a, b)
    expected = 2 * (run / len(a)) * (run / len(b)) / (run / len(a) + run / len(b)) if run else 0.0
    assert cmrc_f1([truth], guess) == pytest.approx(expected)


def test_long_answers_of_few_characters_are_compared_in_full() -> None:
    assert cmrc_f1(["中国" * 300], "国中" * 300) == pytest.approx(599 / 600)


def test_scores_are_means() -> None:
    questions = [question("Paris"), question("the cat sat"), question("dog")]
    found = scores(questions, ["paris", "cat", ""])
    assert found == {"exact": pytest.approx(1 / 3), "f1": pytest.approx((1 + 2 / 3) / 3)}
    assert scores([question("北京大学")], ["北京"], "zh") == {"exact": 0.0, "f1": pytest.approx(2 / 3)}


def test_scores_with_questions_that_have_no_answer() -> None:
    questions = [question("the cat sat"), question(), question(), question("dog")]
    assert scores(questions, ["cat", "", "made up", "dog"]) == {
        "exact": 0.5,
        "f1": pytest.approx((2 / 3 + 1 + 0 + 1) / 4),
        "has_answer_exact": 0.5,
        "has_answer_f1": pytest.approx((2 / 3 + 1) / 2),
        "no_answer_accuracy": 0.5,
    }
    assert scores([question()], [""]) == {"exact": 1.0, "f1": 1.0, "no_answer_accuracy": 1.0}


@given(
    st.lists(
        st.tuples(st.sampled_from([-2.5, -1.0, 0.0, 0.5, 3.0]), st.booleans(), WORDS, WORDS), min_size=1, max_size=10
    ),
    st.sampled_from(["en", "zh"]),
)
def test_no_threshold_is_better_than_the_best(rows: list[tuple[float, bool, str, str]], language: str) -> None:
    no_answer = [score for score, *_ in rows]
    questions = [question(*([truth] if has else [])) for _, has, truth, _ in rows]
    guesses = [guess for *_, guess in rows]

    def f1_at(threshold: float) -> float:
        kept = ["" if score > threshold else guess for score, guess in zip(no_answer, guesses, strict=True)]
        return scores(questions, kept, language)["f1"]

    threshold = best_threshold(no_answer, questions, guesses, language)
    assert math.isfinite(threshold)
    tried = {candidate: f1_at(candidate) for candidate in (-math.inf, *no_answer)}
    assert f1_at(threshold) == pytest.approx(max(tried.values()))


def test_the_sweep_of_squad_2_by_hand() -> None:
    """Answering in ascending order of the score gains 1, -1 (there is no answer), 2/3, -1: most after the first."""
    questions = [question("cat"), question(), question("the dog ran"), question()]
    assert best_threshold([0.1, 0.2, 0.3, 0.4], questions, ["cat", "dog", "dog", "cat"]) == 0.1
    # Without the second the third is worth it.
    assert best_threshold([0.1, 0.3, 0.4], [questions[0], *questions[2:]], ["cat", "dog", "cat"]) == 0.3
    # What gains nothing does not raise the threshold.
    assert best_threshold([0.1, 0.2], [question("cat"), question("dog")], ["cat", "fish"]) == 0.1


def test_where_silence_is_best_every_answer_is_held_back() -> None:
    assert best_threshold([-5.0, -7.0], [question(), question("cat")], ["dog", "dog"]) < -7.0


def test_equal_scores_fall_on_the_same_side() -> None:
    # Taken one by one, stopping after the first would seem best; no threshold can do that.
    assert best_threshold([1.0, 1.0, 1.0], [question("cat"), question(), question()], ["cat", "x", "x"]) < 1.0


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(HeedfulError, match="1 guesses cannot be scored against 2"):
        scores([question("a"), question("b")], ["a"])
    with pytest.raises(HeedfulError, match="nothing to score"):
        scores([], [])
    with pytest.raises(HeedfulError, match="2 guesses cannot be scored against 1"):
        best_threshold([0.5, 0.5], [question("a")], ["a"])
