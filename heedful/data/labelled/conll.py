"""Words with tags: CoNLL files (a word a line, its tag in the last column) and JSON lines of words and tags.

Tags come out as IOB2: B-X begins an entity of type X, I-X goes on with it, O is outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from heedful.data.labelled.dataset import Columns, Dataset, TaggedWords
from heedful.data.oddities import Oddities
from heedful.data.tables import ending, holds_objects, read_table, text_under
from heedful.data.text_files import refuse_ragged, text_column
from heedful.errors import HeedfulError
from heedful.text.bert_words import bert_words
from heedful.text.documents import read_lines, read_objects, text_lines
from heedful.text.ideographs import IDEOGRAPHS
from heedful.text.rows import DataSource, Rows

STRAY = "tags I-X that follow neither B-X nor I-X, read as B-X"
NO_WORD = "lines with a tag but no word, left out"
_LAYOUT = '{"words": ["…"], "tags": ["…"]}'
_IOB = re.compile(r"O|[BI]-.+")
_TAGGED = re.compile(r"\t| (O|[BI]-\S+)$")
# Ideographs, kana, and the signs that go with them: written without spaces.
_SPACELESS = re.compile(rf"[{IDEOGRAPHS}\u3000-\u30ff\uff00-\uffef]")


_Block = list[tuple[str, list[str]]]


@dataclass
class _Sentence:
    """A sentence as it stands in the file."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)  # of the words, as file:line


def read_tagged(path: DataSource, labelled: bool = True, columns: Columns = Columns()) -> Dataset[TaggedWords]:  # noqa: B008
    """The sentences of a file; without `labelled`, tags are not looked at and may be missing.

    Files without any B- or I- hold plain tags, such as parts of speech, which stay as they are. An unlabelled .txt
    whose first line has no tabs and does not end in a tag is running text, a sentence a line; an unlabelled .csv has
    the texts in a column, and unlabelled objects may hold a text instead of words.
    """
    oddities = Oddities(path, patient=True)
    if not labelled and isinstance(path, Path) and (ending(path) == ".csv" or _is_running_text(path)):
        texts = _from_table(path, columns) if ending(path) == ".csv" else _from_lines_of_text(path)
        return Dataset(list(texts), oddities.remarks)
    if isinstance(path, Rows) or holds_objects(path):
        objects = read_objects(path, oddities.refuse)
        if not labelled:
            return oddities.dataset(list(oddities.each(objects, lambda both: _untagged(*both, columns))))
        sentences = list(oddities.each(objects, lambda both: _from_object(*both)))
    else:
        _refuse_csv(path)
        sentences = list(_from_lines(path, labelled, oddities))
    if not sentences and not oddities.bad:
        raise HeedfulError("no sentences in this file", where=path, remedy="give a word and its tag on each line")
    if labelled and any(tag.startswith(("B-", "I-")) for sentence in sentences for tag in sentence.tags):
        sentences = list(oddities.each(sentences, lambda sentence: _in_iob2(sentence, oddities)))
    tagged = [
        tagged_from_words(sentence.words, sentence.tags if labelled else None, sentence.places[0])
        for sentence in sentences
    ]
    return oddities.dataset(tagged)


def tagged_from_words(words: Sequence[str], tags: Sequence[str] | None = None, where: str = "") -> TaggedWords:
    """Words as a sentence, with a space between them unless they are of a script that is written without."""
    spans, text = [], ""
    mostly_spaceless = sum(len(word) == 1 and bool(_SPACELESS.match(word)) for word in words) > len(words) / 2
    for number, word in enumerate(words):
        if number and not _touch(words[number - 1], word, mostly_spaceless):
            text += " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    return TaggedWords(tuple(words), text, tuple(spans), None if tags is None else tuple(tags), where)


def tagged_from_text(text: str) -> TaggedWords:
    """The words of a text as BERT's tokenizer splits it: at spaces, signs, and around every ideograph."""
    spans = bert_words(text)
    return TaggedWords(tuple(text[start:end] for start, end in spans), text, tuple(spans))


def _touch(left: str, right: str, mostly_spaceless: bool) -> bool:
    # Among single ideographs other characters are single too: the digits of 1 9 6 6 年, the letters of a name.
    if mostly_spaceless and 1 in (len(left), len(right)):
        return True
    return bool(_SPACELESS.match(left[-1:]) and _SPACELESS.match(right[:1]))


def _is_running_text(path: Path) -> bool:
    if ending(path) != ".txt":
        return False
    first = next((line for line in read_lines(path) if line.strip()), None)
    return first is not None and not _TAGGED.search(first.rstrip())


def _from_lines_of_text(path: Path) -> Iterator[TaggedWords]:
    for number, line in enumerate(text_lines(path), start=1):
        yield replace(tagged_from_text(line), where=f"{path}:{number}")


def _from_table(path: Path, columns: Columns) -> Iterator[TaggedWords]:
    refuse_ragged(path)
    table = read_table(path)
    name = text_column(table, columns.text)
    for row in table.rows:
        yield replace(tagged_from_text(text_under(name, row)), where=row.where)


def _refuse_csv(path: Path) -> None:
    if ending(path) == ".csv":
        raise HeedfulError(
            "this is a CSV, and tags are read from CoNLL files or JSON lines",
            where=path,
            remedy="put a word and its tag on each line and a blank line after each sentence (.conll), or write "
            f"{_LAYOUT} on each line (.jsonl); a table of texts is for classify and regress",
        )


def _from_lines(path: Path, labelled: bool, oddities: Oddities) -> Iterator[_Sentence]:
    blocks = _blocks(path)
    first = next(blocks, None)
    if first is None:
        return iter(())
    columns = len(first[0][1])
    return oddities.each(chain([first], blocks), lambda block: _sentence(block, columns, labelled, oddities))


def _blocks(path: Path) -> Iterator[_Block]:
    """The lines between blank ones, each as its place and its cells."""
    block: _Block = []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip() and not line.startswith("-DOCSTART-"):
            block.append((f"{path}:{number}", re.split("\t" if "\t" in line else " +", line.rstrip())))
        elif block and not line.strip():
            yield block
            block = []
    if block:
        yield block


def _sentence(block: _Block, columns: int, labelled: bool, oddities: Oddities) -> _Sentence | None:
    sentence = _Sentence()
    for where, cells in block:
        _check_columns(cells, columns, labelled, where)
        if not cells[0].strip():
            oddities.note(NO_WORD, where)
            continue
        sentence.words.append(cells[0])
        sentence.tags.append(cells[-1].strip())
        sentence.places.append(where)
    return sentence if sentence.words else None


def _check_columns(cells: Sequence[str], columns: int, labelled: bool, where: str) -> None:
    if labelled and len(cells) < 2:
        remedy = "put a word and its tag on each line, with a tab or a space between them"
        raise HeedfulError(f"no tag after the word {cells[0]!r}", where=where, remedy=remedy)
    if labelled and " " in cells[-1].strip():
        remedy = "a tag is one word, in the last column; a table of texts is for classify and regress"
        raise HeedfulError(f"the tag {cells[-1].strip()!r} has spaces", where=where, remedy=remedy)
    if len(cells) != columns:
        what = f"this line has {len(cells)} columns, the first had {columns}"
        raise HeedfulError(what, where=where, remedy="give every line the same columns, the tag in the last one")


def _from_object(where: str, row: dict[str, Any]) -> _Sentence | None:
    words, tags = _strings(row, ("words", "tokens"), where), _strings(row, ("tags", "labels", "ner_tags"), where)
    if len(tags) != len(words):
        what = f"{len(words)} words, but {len(tags)} tags"
        raise HeedfulError(what, where=where, remedy="give every word one tag")
    return _Sentence(words, tags, [where] * len(words)) if words else None


def _untagged(where: str, row: dict[str, Any], columns: Columns) -> TaggedWords:
    """The words of an object, or its text."""
    text = row.get(columns.text or "text")
    if isinstance(text, str) and not {"words", "tokens"} & row.keys():
        return replace(tagged_from_text(text), where=where)
    return tagged_from_words(_strings(row, ("words", "tokens"), where), None, where)


def _strings(row: dict[str, Any], names: Sequence[str], where: str) -> list[str]:
    values = next((row[name] for name in names if name in row), None)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        what = f"no list of strings under {' or '.join(map(repr, names))} (there are: {', '.join(row)})"
        raise HeedfulError(what, where=where, remedy=f"write {_LAYOUT}, tags by name")
    return values


def _in_iob2(sentence: _Sentence, oddities: Oddities) -> _Sentence:
    """The sentence, whose tags become IOB2."""
    before = "O"
    for number, (tag, where) in enumerate(zip(sentence.tags, sentence.places, strict=True)):
        if not _IOB.fullmatch(tag):
            raise HeedfulError(
                f"the tag {tag!r} is neither O nor B- or I- with a type",
                where=where,
                remedy="write B-X where an entity of type X begins, I-X where it goes on, O elsewhere "
                "(of the BIOES and BMES schemes, S- becomes B-, and M- and E- become I-)",
            )
        if tag.startswith("I-") and before[1:] != tag[1:]:
            oddities.note(STRAY, where)
            sentence.tags[number] = f"B-{tag[2:]}"
        before = tag
    return sentence
