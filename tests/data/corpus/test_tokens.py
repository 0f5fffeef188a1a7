"""The arrays of a unit: tokens, sentences, documents, words and phrases."""

import pytest

from heedful.data.corpus.lexicon import read_lexicon
from heedful.data.corpus.tokens import PHRASE, WORD, TokenSettings, UnitTokeniser, is_heading
from heedful.errors import HeedfulError
from heedful.text.sentences import split_sentences


def units(tokenizer, arrays, bit):
    pieces = [tokenizer.vocabulary[number] for number in arrays["tokens"]]
    found = []
    for piece, flag in zip(pieces, arrays["bounds"], strict=True):
        if flag & bit:
            found.append([])
        found[-1].append(piece)
    return [" ".join(unit).replace(" ##", "") for unit in found]


def test_documents_and_sentences(tokenizer):
    arrays, facts = UnitTokeniser(tokenizer, TokenSettings())("ba. Da da.\nfa\n\n\u200b\n\nka zz.".encode())
    assert arrays["documents"].tolist() == [0, 3]  # the one in the middle has no tokens
    assert arrays["sentences"].tolist() == [0, 2, 5, 6]
    assert facts == {"documents": 2, "sentences": 4, "tokens": 9, "unknown": 1}
    assert "bounds" not in arrays and arrays["tokens"].dtype == "uint16"


def test_lines_as_sentences(tokenizer):
    arrays, _ = UnitTokeniser(tokenizer, TokenSettings(layout="sentences"))(b"Ba. Da da.\nfa")
    assert arrays["sentences"].tolist() == [0, 5]


def test_words_of_both_languages(tokenizer):
    arrays, _ = UnitTokeniser(tokenizer, TokenSettings(words=True))("Baness 我们喜欢中国 dening.".encode())
    assert units(tokenizer, arrays, WORD) == ["baness", "我 们", "喜 欢", "中 国", "dening", "."]


def test_phrases_are_one_unit(tokenizer):
    settings = TokenSettings(words=True, lexicon=("bar den", "bar den los", "国北", "ken"))
    arrays, _ = UnitTokeniser(tokenizer, settings)("Bar den losing. Bar den los bar\nden bar dening 中国北京".encode())
    assert units(tokenizer, arrays, WORD)[-2:] == ["中 国", "北 京"]
    phrases = units(tokenizer, arrays, PHRASE)
    assert phrases == ["bar den", "losing", ".", "bar den los", "bar", "den", "bar", "dening", "中", "国 北", "京"]


def test_lexicon_file(tmp_path):
    (tmp_path / "a.txt").write_text("b c\t3\na\n\nb c\n")
    assert read_lexicon(tmp_path / "a.txt") == ("a", "b c")
    (tmp_path / "b.txt").write_text("\n")
    with pytest.raises(HeedfulError, match="no phrases"):
        read_lexicon(tmp_path / "b.txt")


@pytest.mark.parametrize("line", ["Professional career.", "Location", "The school.", "車站結構.", "历史"])
def test_headings(line):
    assert is_heading(line, len(split_sentences(line)))


@pytest.mark.parametrize(
    "line", ["He came, saw and won.", "Is it so?", "It was built in 1840 by the two brothers.", "他來了。", "Yes. No."]
)
def test_no_headings(line):
    assert not is_heading(line, len(split_sentences(line)))
