"""Questions about a context: SQuAD 1.1 and 2.0 files, and JSON lines with a question, its context and its answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.data.labelled.dataset import Answer, Dataset, Question
from heedful.data.oddities import Oddities
from heedful.data.tables import ending
from heedful.errors import HeedfulError
from heedful.text.documents import parse_json, read_lines, read_objects
from heedful.text.rows import DataSource

MOVED = "answers whose offset did not match the text, moved to where they stand"
DROPPED = "answers that do not stand where the offset says nor near it, dropped"
LEFT_OUT = "questions that lost all their answers, left out"
# How far from its offset an answer that stands in several places of the context may be found.
NEAR = 20
_LAYOUT = '{"data": [{"paragraphs": [{"context": "…", "qas": [{"id": "…", "question": "…", "answers": […]}]}]}]}'

Fields = dict[str, Any]


def read_questions(path: DataSource, labelled: bool = True) -> Dataset[Question]:
    """The questions of a file; without `labelled`, answers are not looked at and may be missing.

    An answer whose offset is wrong is moved to the only place where it stands in the context, or to the nearest one
    if that is near; otherwise it is dropped, and a question with no answer left is left out. All of it is counted.
    """
    oddities = Oddities(path, patient=True)
    if isinstance(path, Path) and ending(path) != ".jsonl":
        asked = _from_document(path)
    else:
        asked = read_objects(path, oddities.refuse)
    questions = list(oddities.each(asked, lambda one: _question(one[1], one[0], labelled, oddities)))
    if not questions and oddities.count(LEFT_OUT):
        where, remedy = oddities.first(LEFT_OUT), "give each answer as it stands in the context, and its start there"
        raise HeedfulError("no question has an answer that stands in its context", where=where, remedy=remedy)
    if not questions and not oddities.bad:
        raise HeedfulError("no questions in this file", where=path, remedy=f"write {_LAYOUT}")
    return oddities.dataset(questions)


def _from_document(path: Path) -> Iterator[tuple[str, Fields]]:
    if ending(path) in (".csv", ".tsv"):
        what = f"this is a table ({ending(path)}), and questions are read from SQuAD files or JSON lines"
        remedy = f"write {_LAYOUT} (.json), or an object a line (.jsonl)"
        raise HeedfulError(what, where=path, remedy=remedy)
    text = "\n".join(read_lines(path))
    if not text.strip():
        return
    document = parse_json(text, path)
    for a, article in enumerate(_list(document, "data", str(path))):
        for p, paragraph in enumerate(_list(article, "paragraphs", f"{path}: data[{a}]")):
            place = f"{path}: data[{a}].paragraphs[{p}]"
            for q, fields in enumerate(_list(paragraph, "qas", place)):
                where = f"{place}.qas[{q}]"
                if not isinstance(fields, dict):
                    raise HeedfulError("this is not a question", where=where, remedy=f"write {_LAYOUT}")
                named = f"{path}: question {fields['id']}" if "id" in fields else where
                yield named, {**fields, "context": paragraph.get("context")}


def _list(holder: Any, name: str, where: str) -> list[Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(found, list):
        remedy = f"write {_LAYOUT}, or an object a line in a file named .jsonl"
        raise HeedfulError(f"there is no list {name!r} here", where=where, remedy=remedy)
    return found


def _question(fields: Fields, where: str, labelled: bool, oddities: Oddities) -> Question | None:
    context, question, name = _text(fields, "context", where), _text(fields, "question", where), fields.get("id", where)
    if not labelled or fields.get("is_impossible") is True:
        return Question(str(name), question, context, (), where)
    given = _answers(fields, where)
    kept = [found for answer in given if (found := _placed(answer, context, where, oddities)) is not None]
    if given and not kept:
        oddities.note(LEFT_OUT, where)
        return None
    return Question(str(name), question, context, tuple(kept), where)


def _text(fields: Fields, name: str, where: str) -> str:
    text = fields.get(name)
    if not isinstance(text, str):
        raise HeedfulError(f"there is no text {name!r} (there are: {', '.join(fields)})", where=where, remedy="add it")
    return text


def _answers(fields: Fields, where: str) -> list[Answer]:
    given = fields.get("answers")
    if isinstance(given, dict):  # as Hugging Face has them: a list of texts beside a list of starts
        texts, starts = (_list(given, name, where) for name in ("text", "answer_start"))
        given = [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=False)]
    if not isinstance(given, list) or not all(_is_answer(answer) for answer in given):
        raise HeedfulError(
            "there is no list of answers, each with a text and its start in characters",
            where=where,
            remedy='write "answers": [{"text": "…", "answer_start": 12}], and [] where the context holds none',
        )
    return [Answer(answer["text"], answer["answer_start"]) for answer in given]


def _is_answer(answer: Any) -> bool:
    return (
        isinstance(answer, dict)
        and isinstance(answer.get("text"), str)
        and isinstance(answer.get("answer_start"), int)
        and not isinstance(answer["answer_start"], bool)
    )


def _placed(answer: Answer, context: str, where: str, oddities: Oddities) -> Answer | None:
    """The answer where it stands in the context, None if that cannot be told."""
    if answer.text and answer.start >= 0 and context.startswith(answer.text, answer.start):
        return answer
    places = _occurrences(answer.text, context)
    nearest = min(places, key=lambda start: abs(start - answer.start), default=None)
    if nearest is None or (len(places) > 1 and abs(nearest - answer.start) > NEAR):
        oddities.note(DROPPED, where)
        return None
    oddities.note(MOVED, where)
    return Answer(answer.text, nearest)


def _occurrences(text: str, context: str) -> list[int]:
    places: list[int] = []
    place = context.find(text) if text.strip() else -1
    while place >= 0:
        places.append(place)
        place = context.find(text, place + 1)
    return places
