"""Sentence splitting: every rule by example, and nothing but white space lost on any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.sentences import sentence_spans, split_sentences

# Each sentence of an example stands between bars.
EXAMPLES = [
    "Hello world.|How are you?|Fine!",
    "Mr. Smith met Mrs. Jones and Dr. Brown.|They talked.",
    "J. R. R. Tolkien wrote it.|George W. Bush did not.",
    "He moved to the U.S. in 1990.|The U.S. Senate met.",
    "She lives in the U.S.|The weather is good there.",
    "We met at 5 p.m. on Jan. 5.|It rained.",
    "They arrived at 5 p.m.|He was late.",
    "Fruit, e.g. Apples, i.e. Red ones, cost 3.14 dollars.|Cheap.",
    "See Fig. 3 and No. 5 for it.|He said no.|Fine.",
    "Acme Inc. Chairman Bob Lee left.|He works at Acme Inc.|The end.",
    "Apples, pears, etc.|They are fruit.",
    "Smith et al. Found nothing.|In 2010 they tried again.",
    "Wait... what?|Well...|He left.",
    '"Really?" she asked.|"Yes."|He nodded.',
    "He said “Go.”|Then he left.|(See below.)|Next one.",
    "“Stop!” he cried.|‘No!’|‘Yes!’",
    "It cost $3.50.|5 people came.",
    "1. First item.|2. Second item.",
    "Visit example.com now.|It is at v1.2.3 today.",
    "What?!|No way!!!|Yes.",
    "The sun sat low.|Mary came in.|Bob left.",
    "He got a Ph.D. in 1999.|Roe v. Wade was decided.",
    "No stop at the end",
    "我用 Python 3.11.|然后走了。|It works.|很好!",
    "他在U.S.工作。|OK.",
]
# The same, without spaces between the sentences.
UNSPACED_EXAMPLES = [
    "他来了。|她走了！|真的吗？|好……|行。",
    "他说：“你好。”|然后走了。",
    "「行くよ。」|と言った。",
    "『好！』|她笑了。|（完。）|结束",
    "真的吗？！|是的！！|好吧。",
    "圆周率是3.14。|版本v1.2很好。|Python很好。",
    "你好吗?|我很好!|是的",
]


@pytest.mark.parametrize("example", EXAMPLES + UNSPACED_EXAMPLES)
def test_examples(example):
    assert split_sentences(example.replace("|", " ")) == example.split("|")


@pytest.mark.parametrize("example", UNSPACED_EXAMPLES)
def test_examples_without_spaces(example):
    assert split_sentences(example.replace("|", "")) == example.split("|")


def test_nothing_to_split():
    assert split_sentences("") == split_sentences(" \n\t ") == []
    assert split_sentences("...") == ["..."]
    assert split_sentences("  a.\n B.  ") == ["a.", "B."]


@given(st.one_of(st.text(), st.text("aB1.!?。！？…”\"')( \n中，U.S")))
def test_nothing_but_white_space_is_lost(text):
    spans = list(sentence_spans(text))
    covered = [False] * len(text)
    previous = 0
    for start, end in spans:
        assert previous <= start < end
        assert not text[start].isspace() and not text[end - 1].isspace()
        covered[start:end] = [True] * (end - start)
        previous = end
    assert all(seen or character.isspace() for seen, character in zip(covered, text, strict=True))
