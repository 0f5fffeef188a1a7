"""Questions: SQuAD's two layouts and JSON lines, answers put where they stand, damage told."""

import gzip
import json

import pytest

from heedful.data.labelled.dataset import Answer, Question
from heedful.data.labelled.squad import DROPPED, LEFT_OUT, MOVED, read_questions
from heedful.errors import HeedfulError

CONTEXT = "The mill in Rome was built in 1782. In Rome it still stands. 它在罗马。"


def squad(*asked, context=CONTEXT):
    return {"version": "x", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(asked)}]}]}


def asked(name, *answers, **more):
    return {"id": name, "question": f"{name}?", "answers": [{"text": t, "answer_start": s} for t, s in answers], **more}


def write(folder, name, value):
    data = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_squad_1(tmp_path, name):
    path = write(tmp_path, name, squad(asked("when", ("1782", 30), ("in 1782", 27)), asked("where", ("罗马", 63))))
    read = read_questions(path)
    assert read.examples == [
        Question("when", "when?", CONTEXT, (Answer("1782", 30), Answer("in 1782", 27)), f"{path}: question when"),
        Question("where", "where?", CONTEXT, (Answer("罗马", 63),), f"{path}: question where"),
    ]
    assert read.remarks == ()


def test_squad_2_has_questions_without_an_answer(tmp_path):
    impossible = asked("who", is_impossible=True, plausible_answers=[{"text": "mill", "answer_start": 4}])
    path = write(tmp_path, "a.json", squad(impossible, asked("when", ("1782", 30), is_impossible=False), asked("why")))
    read = read_questions(path)
    assert [(one.id, len(one.answers)) for one in read.examples] == [("who", 0), ("when", 1), ("why", 0)]
    assert read.remarks == ()


def test_json_lines(tmp_path):
    rows = [
        {"question": "q1", "context": CONTEXT, "answers": [{"text": "1782", "answer_start": 30}]},
        {"id": 7, "question": "q2", "context": CONTEXT, "answers": {"text": ["mill"], "answer_start": [4]}},
        {"question": "q3", "context": CONTEXT, "answers": {"text": [], "answer_start": []}},
    ]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert read_questions(path).examples == [
        Question(f"{path}:1", "q1", CONTEXT, (Answer("1782", 30),), f"{path}:1"),
        Question("7", "q2", CONTEXT, (Answer("mill", 4),), f"{path}:2"),
        Question(f"{path}:3", "q3", CONTEXT, (), f"{path}:3"),
    ]


def test_offsets_that_do_not_match_the_text(tmp_path):
    path = write(
        tmp_path,
        "a.json",
        squad(
            asked("once", ("1782", 999)),  # stands only once, so there
            asked("before", ("罗马", -1)),
            asked("near", ("Rome", 14)),  # twice: the nearest is two characters away
            asked("later", ("Rome", 30)),  # nine away from the second
            asked("far", ("Rome", 200), ("mill", 4)),  # twice, and neither is near: the other answer stays
            asked("gone", ("Paris", 12)),
            asked("empty", ("", 3), (" ", 4)),
        ),
    )
    read = read_questions(path)
    assert [(one.id, one.answers) for one in read.examples] == [
        ("once", (Answer("1782", 30),)),
        ("before", (Answer("罗马", 63),)),
        ("near", (Answer("Rome", 12),)),
        ("later", (Answer("Rome", 39),)),
        ("far", (Answer("mill", 4),)),
    ]
    assert all(CONTEXT[a.start :].startswith(a.text) for one in read.examples for a in one.answers)
    assert {remark.what: (remark.count, remark.places) for remark in read.remarks} == {
        MOVED: (4, tuple(f"{path}: question {name}" for name in ("once", "before", "near"))),
        DROPPED: (4, tuple(f"{path}: question {name}" for name in ("far", "gone", "empty"))),
        LEFT_OUT: (2, tuple(f"{path}: question {name}" for name in ("gone", "empty"))),
    }


def test_nothing_left_is_an_error(tmp_path):
    path = write(tmp_path, "a.json", squad(asked("gone", ("Paris", 12))))
    with pytest.raises(HeedfulError, match="no question has an answer that stands in its context") as caught:
        read_questions(path).settled()
    assert caught.value.where == f"{path}: question gone"


def test_without_labels_answers_are_not_looked_at(tmp_path):
    path = write(tmp_path, "a.json", squad({"id": "a", "question": "q"}, asked("gone", ("Paris", 12))))
    read = read_questions(path, labelled=False)
    assert [(one.id, one.answers) for one in read.examples] == [("a", ()), ("gone", ())] and read.remarks == ()


@pytest.mark.parametrize(
    ("value", "message", "place"),
    [
        ({"data": 1}, "no list 'data'", ""),
        ([], "no list 'data'", ""),
        ({"data": [{}]}, "no list 'paragraphs'", ": data[0]"),
        ({"data": [{"paragraphs": [1]}]}, "no list 'qas'", ": data[0].paragraphs[0]"),
        (squad("x"), "not a question", ": data[0].paragraphs[0].qas[0]"),
        (squad({"question": 1}), "no text 'question'", ": data[0].paragraphs[0].qas[0]"),
        (squad(asked("a"), context=None), "no text 'context'", ": question a"),
        (squad({"id": "a", "question": "q"}), "no list of answers", ": question a"),
        (squad({"id": "a", "question": "q", "answers": ["1782"]}), "no list of answers", ": question a"),
        (squad(asked("a", ("1782", "30"))), "no list of answers", ": question a"),
        (squad(), "no questions", ""),
    ],
)
def test_what_is_no_squad_file_is_told_with_its_place(tmp_path, value, message, place):
    path = write(tmp_path, "a.json", value)
    with pytest.raises(HeedfulError, match=message) as caught:
        read_questions(path).settled()
    assert str(caught.value.where) == f"{path}{place}"


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b'{"data":\n [}', "not valid JSON", ":2"),
        (b'{"data":\n "\xff"}', "not UTF-8", ":2"),
        (b'{"data": "\\ud800"}', "surrogate", ":1"),
        (b"\n", "no questions", ""),
        (b'{"question": "q"}\n{"question": "r"}\n', "not valid JSON: Extra data", ":2"),
    ],
)
def test_damaged_files(tmp_path, content, message, line):
    path = write(tmp_path, "a.json", content)
    with pytest.raises(HeedfulError, match=message) as caught:
        read_questions(path).settled()
    assert str(caught.value.where) == f"{path}{line}"


def test_a_byte_order_mark_is_dropped_and_told(tmp_path):
    path = write(tmp_path, "a.json", b"\xef\xbb\xbf" + json.dumps(squad(asked("when", ("1782", 30)))).encode())
    (remark,) = read_questions(path).remarks
    assert "byte order mark" in remark.what
