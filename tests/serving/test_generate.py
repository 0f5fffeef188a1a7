"""Texts over HTTP are those of Python, whole or piece by piece; a reader that goes away ends the writing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful.inference.embedder import Embedder
from heedful.inference.load import load_embedder
from heedful.inference.scoring import score_lines

PROMPTS = ["The cat", "the", "on the cat, in", "猫"]
PATH = "/v1/models/gpt/generate"


@pytest.fixture(scope="module")
def gpt(gpt_folder: Path) -> Embedder:
    return load_embedder(gpt_folder, "cpu")


@pytest.fixture(scope="module")
def writer(start: Any, gpt_folder: Path) -> Iterator[Any]:
    with start((str(gpt_folder),)) as live:
        yield live


def texts(answer: Any) -> list[list[str]]:
    return [[one["text"] for one in result["texts"]] for result in answer["results"]]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"repetition_penalty": 1.3, "stop": ["a"]},
        {"beam": 3, "n_best": 2},
        {"sample": True, "count": 2, "seed": 7, "top_p": 0.9},
    ],
)
def test_texts_are_those_of_python(writer: Any, gpt: Embedder, how: dict[str, Any]) -> None:
    found = texts(writer.ask("gpt", "generate", inputs=PROMPTS, max_tokens=12, **how))
    expected = gpt.generate(PROMPTS, max_tokens=12, **how)
    assert found == [[one] if isinstance(one, str) else one for one in expected]


def test_a_blank_text_is_read_as_the_beginning_of_one(writer: Any, gpt: Embedder) -> None:
    begins, cat = gpt.embed(["<|endoftext|>", "the cat"])
    found = writer.ask("gpt", "embed", inputs=["", "the cat"])["results"]
    assert found == [pytest.approx(one.tolist(), abs=1e-5) for one in (begins, cat)]
    assert writer.ask("gpt", "attention", inputs=[""])["results"][0]["tokens"] == ["<|endoftext|>"]


def events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    name = "piece"
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        if line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("how", [{}, {"sample": True, "seed": 3}])
def test_a_stream_has_the_same_text_piece_by_piece(writer: Any, gpt: Embedder, how: dict[str, Any]) -> None:
    body = {"inputs": ["The cat"], "max_tokens": 20, "stream": True, **how}
    with writer.http.stream("POST", PATH, json=body) as answer:
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        *pieces, (name, end) = events(answer.iter_lines())
    assert "".join(one["text"] for _, one in pieces) == gpt.generate("The cat", max_tokens=20, **how)
    assert name == "end" and end["reason"] in ("length", "end") and len(pieces) > 1 and "timing" not in end


def test_a_stream_tells_its_clocks_when_it_is_asked_for_them(writer: Any) -> None:
    body = {"inputs": ["The cat"], "max_tokens": 5, "stream": True, "timing": True}
    with writer.http.stream("POST", PATH, json=body) as answer:
        *_, (_, end) = events(answer.iter_lines())
    clocks = end["timing"]
    assert list(clocks) == ["queue_ms", "tokenize_ms", "compute_ms", "total_ms"] and clocks["tokenize_ms"] > 0
    assert 0 < clocks["compute_ms"] <= clocks["total_ms"]


def test_a_stream_that_takes_longer_than_it_may_is_ended_with_an_error(writer: Any) -> None:
    body = {"inputs": ["The cat"], "max_tokens": 4000, "stream": True, "when_full": "slide", "timeout_ms": 30}
    with writer.http.stream("POST", PATH, json=body) as answer:
        *_, (name, end) = events(answer.iter_lines())
    assert name == "end" and end["error"]["code"] == "too_late" and "0.03 seconds" in end["error"]["message"]
    assert texts(writer.ask("gpt", "generate", inputs=["The cat"], max_tokens=3))


def test_a_stream_has_the_limits_of_every_request(start: Any, gpt_folder: Path) -> None:
    with start((str(gpt_folder),), max_characters=20, max_tokens=30) as small:
        for body, status, code in (
            ({"inputs": ["The cat " * 3]}, 413, "text_too_long"),
            ({"inputs": ["The cat"], "max_tokens": 40}, 413, "too_many_tokens"),
            ({"inputs": ["The\0cat"]}, 422, "nul"),
        ):
            for streamed in (False, True):
                error = small.refused(PATH, json={**body, "stream": streamed})
                assert (error["status"], error["code"]) == (status, code)


def test_what_cannot_be_streamed_or_written_is_refused(writer: Any) -> None:
    for body in (
        {"inputs": ["a", "b"], "stream": True},
        {"inputs": ["a"], "stream": True, "beam": 2},
        {"inputs": [" "], "stream": True},
        {"inputs": [""]},
        {"inputs": ["a"], "temperature": 2.0},
        {"inputs": ["a"], "max_tokens": 0},
        {"inputs": ["The cat " * 99], "stream": False},
    ):
        assert writer.refused(PATH, json=body)["status"] == 422
    assert texts(writer.ask("gpt", "generate", inputs=["The cat"], max_tokens=3))


def test_a_reader_that_goes_away_ends_the_writing(writer: Any) -> None:
    batcher = writer.running.server.service.batcher
    body = {"inputs": ["The cat"], "max_tokens": 4000, "stream": True, "when_full": "slide", "sample": True}
    with writer.http.stream("POST", PATH, json=body) as answer:
        next(events(answer.iter_lines()))
    until = time.monotonic() + 30
    while batcher.computing and time.monotonic() < until:
        time.sleep(0.01)
    assert not batcher.computing and threading.active_count() > 1
    assert texts(writer.ask("gpt", "generate", inputs=["The cat"], max_tokens=3))


def test_scores_are_those_of_python(writer: Any, gpt: Embedder) -> None:
    found = writer.ask("gpt", "score", inputs=[*PROMPTS, ""])["results"]
    for ours, line in zip(found, score_lines(gpt, [*PROMPTS, ""], gpt.limit(None)), strict=True):
        assert ours["kind"] == "left-to-right" and (ours["tokens"], ours["words"]) == (line.score.tokens, line.words)
        if line.score.tokens:
            assert ours["word_perplexity"] == pytest.approx(line.per_word, rel=1e-4)
