"""Tagged words: CoNLL and JSON lines, tags made IOB2, and the places of words in the text."""

import gzip

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heedful.data.labelled.conll import NO_WORD, STRAY, read_tagged, tagged_from_text, tagged_from_words
from heedful.data.labelled.dataset import TaggedWords
from heedful.errors import HeedfulError
from heedful.text.bert_pipeline import SPECIAL_TOKENS, wordpiece_tokenizer

NAMES = "Ann\tB-PER\nLee\tI-PER\nsings\tO\n\nin\tO\nRome\tB-LOC\n"


def write(folder, name, content):
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


def words_and_tags(path, **options):
    return [(one.words, one.tags) for one in read_tagged(path, **options).examples]


EXPECTED = [(("Ann", "Lee", "sings"), ("B-PER", "I-PER", "O")), (("in", "Rome"), ("O", "B-LOC"))]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.conll", NAMES),
        ("a.txt.gz", NAMES.replace("\t", " ").replace("\n", "\r\n")),
        ("a.conll", NAMES.replace("\t", "\tNN\tI-NP\t")),
        ("a", "-DOCSTART- -X- O O\n\n" + NAMES.replace("\t", "  NN  I-NP  ") + "\n\n-DOCSTART- -X- O O\n"),
        ("a.jsonl", '{"words": ["Ann", "Lee", "sings"], "tags": ["B-PER", "I-PER", "O"]}\n'
                    '{"tokens": ["in", "Rome"], "labels": ["O", "B-LOC"]}\n'),
    ],
)  # fmt: skip
def test_the_same_sentences_in_every_layout(tmp_path, name, content):
    read = read_tagged(write(tmp_path, name, content))
    assert [(one.words, one.tags) for one in read.examples] == EXPECTED and read.remarks == ()


def test_text_places_and_lines(tmp_path):
    path = write(tmp_path, "a.conll", NAMES)
    assert read_tagged(path).examples[1] == TaggedWords(
        ("in", "Rome"), "in Rome", ((0, 2), (3, 7)), ("O", "B-LOC"), f"{path}:5"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("Ann sings .", "Ann sings ."),
        ("我 爱 北 京 。", "我爱北京。"),
        ("1 9 6 6 年 出 生 ， 汉 族", "1966年出生，汉族"),
        ("我 爱 New York", "我爱 New York"),
        ("我 们 都 爱 New York 城 ！", "我们都爱New York城！"),
        ("中国 的 首都 是 北京", "中国的首都是北京"),
        ("a b c", "a b c"),
        ("中 文 in English words mostly", "中文 in English words mostly"),
        ("東京 タワー は 高い", "東京タワーは高い"),
        ("서울 은 크다", "서울 은 크다"),
    ],
)
def test_scripts_without_spaces_are_joined_without_spaces(words, text):
    assert tagged_from_words(words.split()).text == text


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4)))
def test_every_word_stands_at_its_place(words):
    made = tagged_from_words(words)
    assert [made.text[start:end] for start, end in made.spans] == words


def test_a_stray_inside_tag_begins_an_entity_and_is_counted(tmp_path):
    tags = ["I-PER", "I-PER", "I-LOC", "O", "I-LOC", "B-LOC", "I-LOC", "I-PER", "B-ORG"]
    path = write(tmp_path, "a.conll", "".join(f"w\t{tag}\n" for tag in tags) + "\nw\tI-ORG\n")
    read = read_tagged(path)
    assert read.examples[0].tags == ("B-PER", "I-PER", "B-LOC", "O", "B-LOC", "B-LOC", "I-LOC", "B-PER", "B-ORG")
    assert read.examples[1].tags == ("B-ORG",)  # an entity ends with its sentence
    (remark,) = read.remarks
    assert (remark.what, remark.count, remark.places) == (STRAY, 5, (f"{path}:1", f"{path}:3", f"{path}:5"))


@pytest.mark.parametrize("tag", ["PER", "S-PER", "M-PER", "B-", "I-", "b-PER", "BPER", "X"])
def test_a_tag_of_no_known_kind_is_an_error(tmp_path, tag):
    path = write(tmp_path, "a.conll", f"Ann\tB-PER\nsings\tO\n\nRome\t{tag}\n")
    with pytest.raises(HeedfulError, match=f"the tag '{tag}' is neither") as caught:
        read_tagged(path).settled()
    assert caught.value.where == f"{path}:4" and "B-X" in caught.value.remedy


def test_files_of_plain_tags_stay_as_they_are(tmp_path):
    path = write(tmp_path, "a.conll", "Ann\tPROPN\nsings\tVERB\n\nO\tINTJ\n")
    read = read_tagged(path)
    assert [one.tags for one in read.examples] == [("PROPN", "VERB"), ("INTJ",)] and read.remarks == ()


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        ("Ann\tO\nsings\n", "no tag after the word 'sings'", 2),
        ("Ann\tO\nsings\t\n", "no tag after the word 'sings'", 2),
        ("Ann\tNN\tO\nsings\tO\n", "2 columns, the first had 3", 2),
        ("Ann O\nNew York O\n", "3 columns, the first had 2", 2),
        ("Ann\tO\n\nsi\udcffngs\tO\n", "not UTF-8", 3),
    ],
)
def test_lines_that_are_not_as_the_others(tmp_path, content, message, line):
    path = write(tmp_path, "a.conll", content.encode(errors="surrogateescape"))
    with pytest.raises(HeedfulError, match=message) as caught:
        read_tagged(path).settled()
    assert caught.value.where == f"{path}:{line}"


@pytest.mark.parametrize("content", ["", "\n\n", "-DOCSTART- -X- O\n\n"])
@pytest.mark.parametrize("name", ["a.conll", "a.txt"])
@pytest.mark.parametrize("labelled", [True, False])
def test_no_sentences_is_an_error(tmp_path, name, content, labelled):
    path = write(tmp_path, name, content)
    with pytest.raises(HeedfulError, match="no sentences") as caught:
        read_tagged(path, labelled).settled()
    assert caught.value.where == path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"words": ["a"], "tags": ["O", "O"]}', "1 words, but 2 tags"),
        ('{"words": ["a"], "tags": [0]}', "no list of strings under 'tags'"),
        ('{"words": "a", "tags": ["O"]}', "no list of strings under 'words'"),
        ('{"text": "a"}', r"no list of strings under 'words' or 'tokens' \(there are: text\)"),
    ],
)
def test_json_lines_that_are_no_sentences(tmp_path, line, message):
    path = write(tmp_path, "a.jsonl", '{"words": ["a"], "tags": ["O"]}\n' + line + "\n")
    with pytest.raises(HeedfulError, match=message) as caught:
        read_tagged(path).settled()
    assert caught.value.where == f"{path}:2"


def test_lines_without_a_word_are_left_out_and_counted(tmp_path):
    path = write(tmp_path, "a.conll", "\ufeff中 B-LOC\n O\n\u3000 O\n国 I-LOC\n")
    read = read_tagged(path)
    assert [(one.words, one.tags) for one in read.examples] == [(("中", "国"), ("B-LOC", "I-LOC"))]
    assert {remark.what: remark.places for remark in read.remarks} == {
        "byte order mark at the start, passed over": (f"{path}:1",),
        NO_WORD: (f"{path}:2", f"{path}:3"),
    }


def test_without_labels_tags_are_not_looked_at(tmp_path):
    untagged = [(words, None) for words, _ in EXPECTED]
    assert words_and_tags(write(tmp_path, "a.conll", NAMES.replace("B-", "X-")), labelled=False) == untagged
    assert words_and_tags(write(tmp_path, "a.txt", NAMES), labelled=False) == untagged
    assert words_and_tags(write(tmp_path, "b.txt", NAMES.replace("\t", " ")), labelled=False) == untagged
    assert words_and_tags(write(tmp_path, "b.conll", "Ann\nLee\nsings\n\nin\nRome\n"), labelled=False) == untagged
    assert words_and_tags(write(tmp_path, "c.jsonl", '{"words": ["a", "b"]}\n'), labelled=False) == [(("a", "b"), None)]


def test_running_text_without_labels(tmp_path):
    path = write(tmp_path, "a.txt", "\nAnn sings, in Rome.\n我爱 New York\n")
    assert read_tagged(path, labelled=False).examples == [
        TaggedWords((), "", (), None, f"{path}:1"),  # a blank line is a text, and gets its answer
        TaggedWords(("Ann", "sings", ",", "in", "Rome", "."), "Ann sings, in Rome.",
                    ((0, 3), (4, 9), (9, 10), (11, 13), (14, 18), (18, 19)), None, f"{path}:2"),
        TaggedWords(("我", "爱", "New", "York"), "我爱 New York", ((0, 1), (1, 2), (3, 6), (7, 11)), None, f"{path}:3"),
    ]  # fmt: skip


def test_words_of_a_text():
    made = tagged_from_text("  Don't 去北京!\n")
    assert made.words == ("Don", "'", "t", "去", "北", "京", "!") and made.spans[3] == (8, 9)
    assert made.text == "  Don't 去北京!\n" and made.tags is None
    assert tagged_from_text(" ").words == ()
    with pytest.raises(HeedfulError, match="not a whole text"):
        tagged_from_text("\ud800")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Cn", "Co"], exclude_characters="\ufffd")))
def test_words_are_those_of_the_tokenizer(text):
    # The library's table of ideographs lacks the first 256 of extension E, which Google's and ours have.
    assume(not any(0x2B820 <= ord(character) < 0x2B920 for character in text))
    vocabulary = {token: number for number, token in enumerate(SPECIAL_TOKENS.values())}
    library = wordpiece_tokenizer(vocabulary, lowercase=False, strip_accents=False)
    # No word has a piece, so each is one [UNK] that stands where the word does.
    assert list(tagged_from_text(text).spans) == library.encode(text, add_special_tokens=False).offsets


def test_a_table_of_texts_is_not_taken_for_tags(tmp_path):
    path = write(tmp_path, "a.tsv", "label\tsentence\n1\tA fine film.\n")
    with pytest.raises(HeedfulError, match=r"the tag 'A fine film.' has spaces") as told:
        read_tagged(path).settled()
    assert str(told.value.where).endswith("a.tsv:2") and "classify" in told.value.remedy
