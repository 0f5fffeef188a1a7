"""Exact match and F1 of answers, as the official scripts of SQuAD and CMRC 2018 count them; fractions, not per cent.

SQuAD is scored by the rules of version 2.0. Where there are answers these agree with the rules of 1.1, except for
an answer of which nothing is left without articles and punctuation, such as "the".
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from heedful.data.labelled.dataset import Question
from heedful.tasks.label_metrics import require_pairs

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")

# CMRC's script removes these characters and no others: an ASCII comma, a bracket and an ellipsis stay.
_NO_CHINESE_PUNCTUATION = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CHINESE_CHARACTER = re.compile("([\u4e00-\u9fa5])")
# What NLTK's word_tokenize, which CMRC's script uses between Chinese characters, makes tokens of their own.
_TOKEN_OF_ITS_OWN = re.compile(
    r"""[;@#$%&?!()\[\]{}<>"«»‘„\u2012-\u2015]"""
    r"""|\.{2,}|,(?!\d)|(?<=[^.])\.(?=[\])}>"'»\s]*$)"""  # 1,000 and 3.14 stay whole; a full stop ends the run
    r"""|(?<=[^'\s])(?:n't|'(?:s|m|d|ll|re|ve)?)(?!\w)"""  # don't → do n't, it's → it 's
)

Measure = Callable[[Sequence[str], str], float]


def normalised(text: str) -> str:
    """An answer as SQuAD compares it: lower case, without ASCII punctuation, a, an, the, and needless white space."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact(truths: Sequence[str], guess: str) -> float:
    """1.0 if the normalised guess is one of the normalised truths, else 0.0; where there are none, if it is empty."""
    return float(normalised(guess) in _comparable(truths))


def f1(truths: Sequence[str], guess: str) -> float:
    """The best F1 over the truths, of the words as bags: 2·common / (words of the truth + words of the guess).

    If the truth or the guess is empty (no answer), it is 1.0 if both are, else 0.0.
    """
    said = normalised(guess).split()
    return max(_bag_f1(truth.split(), said) for truth in _comparable(truths))


def cmrc_exact(truths: Sequence[str], guess: str) -> float:
    """1.0 if the guess is a truth once both are in lower case and without punctuation, else 0.0."""
    if not truths:
        return float(not cmrc_tokens(guess))
    return float(_without_chinese_punctuation(guess) in map(_without_chinese_punctuation, truths))


def cmrc_f1(truths: Sequence[str], guess: str) -> float:
    """The best F1 over the truths, of the longest run of tokens in common: 2·run / (tokens of truth + of guess).

    Where there are no truths (CMRC has no such question) it is 1.0 for an empty guess, else 0.0.
    """
    said = cmrc_tokens(guess)
    if not truths:
        return float(not said)
    return max(_run_f1(cmrc_tokens(truth), said) for truth in truths)


def cmrc_tokens(text: str) -> list[str]:
    """CMRC's mixed segmentation: without punctuation, each Chinese character a token, the rest in words.

    The words are those of NLTK's word_tokenize, but for its rare contractions (cannot), quotes that open with an
    apostrophe, and full stops in the midst of an answer, which NLTK's sentence model decides on.
    """
    runs = _CHINESE_CHARACTER.split(_without_chinese_punctuation(text))
    return [token for run in runs for token in _TOKEN_OF_ITS_OWN.sub(r" \g<0> ", run).split()]


# The exact match and the F1 that a language is scored by.
MEASURES: dict[str, tuple[Measure, Measure]] = {"en": (exact, f1), "zh": (cmrc_exact, cmrc_f1)}


def scores(questions: Sequence[Question], guesses: Sequence[str], language: str = "en") -> dict[str, float]:
    """The mean `exact` and `f1`, an empty guess saying that there is no answer.

    Where some questions have none, also `no_answer_accuracy` over these, and `has_answer_exact` and
    `has_answer_f1` over the others, if there are any.
    """
    require_pairs(questions, guesses)
    exacts, f1s = (_measured(measure, questions, guesses) for measure in MEASURES[language])
    found = {"exact": exacts.mean(), "f1": f1s.mean()}
    answered = np.array([bool(question.answers) for question in questions])
    if not answered.all():
        found["no_answer_accuracy"] = exacts[~answered].mean()
        if answered.any():
            found |= {"has_answer_exact": exacts[answered].mean(), "has_answer_f1": f1s[answered].mean()}
    return {name: float(value) for name, value in found.items()}


def best_threshold(
    no_answer_scores: Sequence[float], questions: Sequence[Question], guesses: Sequence[str], language: str = "en"
) -> float:
    """The threshold with the highest mean F1 when a no-answer score greater than it means "no answer".

    `guesses` are what is answered if something must be. As in SQuAD 2.0's script the candidates are the scores
    themselves, and the lowest of equally good ones is taken. Unlike there, equal scores fall on the same side, and
    where it is best never to answer, the threshold lies just below the lowest score instead of at 0.
    """
    require_pairs(questions, guesses)
    require_pairs(questions, no_answer_scores)
    measure = MEASURES[language][1]
    gains = _measured(measure, questions, guesses) - _measured(measure, questions, [""] * len(questions))
    order = np.argsort(no_answer_scores, kind="stable")
    ascending = np.asarray(no_answer_scores, dtype=np.float64)[order]
    # What is gained over never answering, by answering all questions up to each.
    totals = np.cumsum(gains[order])
    last_of_equals = np.flatnonzero(np.append(ascending[1:] != ascending[:-1], True))
    best = last_of_equals[np.argmax(totals[last_of_equals])]
    return float(ascending[best]) if totals[best] > 0 else math.nextafter(ascending[0], -math.inf)


def _measured(measure: Measure, questions: Sequence[Question], guesses: Sequence[str]) -> NDArray[np.float64]:
    pairs = zip(questions, guesses, strict=True)
    return np.array([measure([answer.text for answer in question.answers], guess) for question, guess in pairs])


def _comparable(truths: Sequence[str]) -> list[str]:
    """The normalised truths of which something is left, or the empty one: there is no answer."""
    return [text for text in map(normalised, truths) if text] or [""]


def _bag_f1(truth: list[str], guess: list[str]) -> float:
    if not truth or not guess:
        return float(truth == guess)
    return 2 * (Counter(truth) & Counter(guess)).total() / (len(truth) + len(guess))


def _run_f1(truth: list[str], guess: list[str]) -> float:
    # autojunk would overlook frequent tokens of long answers.
    run = SequenceMatcher(None, truth, guess, autojunk=False).find_longest_match().size
    return 2 * run / (len(truth) + len(guess)) if run else 0.0


def _without_chinese_punctuation(text: str) -> str:
    return text.lower().strip().translate(_NO_CHINESE_PUNCTUATION)
