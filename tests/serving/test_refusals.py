"""Bad input gets a status, a field and a sentence; an item that is bad fails alone; the next request is answered."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection
from socket import create_connection
from typing import Any
from urllib.parse import urlsplit

import pytest

EMBED, FILL = "/v1/models/tiny/embed", "/v1/models/tiny/fill"


@pytest.fixture(autouse=True)
def goes_on(live: Any) -> Any:
    """After whatever a test has sent, a good request is answered."""
    yield
    assert len(live.ask("tiny", "embed", inputs=["the cat"])["results"][0]) == 32


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "not JSON"),
        (b"", 400, "not JSON"),
        (b'{"inputs": ["\xff\xfe"]}', 400, "not JSON"),
        (b'{"inputs": ["a\x00b"]}', 400, "control character"),
        (b'{"inputs": ["\\u0000"]}', 422, "NUL"),
        (b'{"inputs": ["\\ud800"]}', 400, "surrogate"),
        (b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "recursion"),
        (b"[1, 2]", 422, "object"),
        (b"null", 422, "object"),
        (b"{}", 422, "inputs is missing"),
        (b'{"inputs": []}', 422, "at least 1 item"),
        (b'{"inputs": "one text"}', 422, "valid array"),
        (b'{"inputs": ["a", 7]}', 422, "valid string"),
        (b'{"inputs": ["a"], "layers": [99]}', 422, "no layer 99"),
        (b'{"inputs": ["a"], "layers": [1e999]}', 422, "layers.0"),
        (b'{"inputs": ["a"], "layers": [123456789012345678901234567890]}', 422, "no layer"),
        (b'{"inputs": ["a"], "layer": [1]}', 422, "no field layer"),
        (b'{"inputs": ["a"], "pooling": "median"}', 422, "pooling"),
        (b'{"inputs": ["a"], "max_length": 0}', 422, "greater than or equal to 1"),
        (b'{"inputs": ["a"], "max_length": 1}', 422, "no room for text"),
        (b'{"inputs": ["a"], "max_length": 600}', 422, "512 positions"),
        (b'{"inputs": ["a"], "timeout_ms": -1}', 422, "timeout_ms"),
        (b'{"inputs": ["a"], "normalize": "yes"}', 422, "boolean"),
    ],
)
def test_bodies_that_cannot_be_answered(live: Any, body: bytes, status: int, said: str) -> None:
    error = live.refused(EMBED, content=body, headers=JSON)
    assert error["status"] == status
    assert said.lower() in f"{error['message']} {error.get('remedy')}".lower()


@pytest.mark.parametrize(
    ("path", "body", "field", "said"),
    [
        ("/embed", {"inputs": []}, "inputs", "at least 1 item"),
        ("/v1/embeddings", {"input": []}, "input", "at least 1 item"),
        ("/embed", {"inputs": ["a", 7]}, "inputs.1", "valid string"),
        ("/embed", {"inputs": 7}, "inputs", "valid"),
        ("/embed", {}, "inputs", "missing"),
    ],
)
def test_of_a_text_or_a_list_the_meant_one_is_told(live: Any, path: str, body: Any, field: str, said: str) -> None:
    error = live.refused(path, json=body)
    assert error["field"] == field and said in error["message"] and ".str" not in error["message"]


def test_the_field_is_named(live: Any) -> None:
    assert live.refused(EMBED, json={"inputs": ["a", 7]})["field"] == "inputs.1"
    assert live.refused(EMBED, json={"inputs": ["a\0"]})["field"] == "inputs.0"


def test_an_unknown_model_or_verb_is_told_with_those_there_are(live: Any) -> None:
    error = live.refused("/v1/models/tony/embed", json={"inputs": ["a"]})
    assert error["status"] == 404 and "are tiny, " in error["message"] and "'tony'" in error["message"]
    error = live.refused("/v1/models/tiny/translate", json={"inputs": ["a"]})
    assert error["status"] == 404 and "it has embed, similarity" in error["message"]
    assert live.refused("/v1/models/..%2F..%2Fetc/embed", json={})["status"] == 404
    assert live.refused("/nowhere", json={})["code"] == "no_such_route"
    assert live.http.get(EMBED).status_code == 405


def test_other_kinds_of_bodies(live: Any) -> None:
    plain = {"inputs": ["a"]}
    error = live.refused(EMBED, content=json.dumps(plain), headers={"content-type": "text/plain"})
    assert (error["status"], error["code"]) == (415, "not_declared")
    error = live.refused(EMBED, content=b"{", headers=JSON)
    assert (error["status"], error["code"]) == (400, "not_json")
    packed = {**JSON, "content-encoding": "gzip"}
    assert live.refused(EMBED, content=b"\x1f\x8b" + b"\0" * 100, headers=packed)["code"] == "compressed"


def answered_at_once(url: str, chunks: bytes) -> bytes:
    """The first line of the answer to a request of one packet, whose body has no announced length."""
    head = f"POST {EMBED} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    parts = urlsplit(url)
    with create_connection((parts.hostname, parts.port), timeout=60) as connection:
        connection.sendall(head.encode() + chunks)
        return connection.makefile("rb").readline()


def test_what_is_too_large_is_refused_before_work_is_done(live: Any, start: Any, tiny_folder: Any) -> None:
    with start((str(tiny_folder),), max_body=2000, max_inputs=5, max_characters=100, max_tokens=120) as small:
        assert small.refused(EMBED, json={"inputs": ["x" * 3000]})["code"] == "body_too_large"
        chunks = (b'{"inputs": ["' + b"x" * 100 for _ in range(100))
        assert small.refused(EMBED, content=chunks, headers=JSON)["status"] == 413
        assert b" 413 " in answered_at_once(small.url, b"bb8\r\n" + b"x" * 3000 + b"\r\n0\r\n\r\n")
        assert small.refused(EMBED, json={"inputs": ["a"] * 6})["code"] == "too_many_inputs"
        assert small.refused(EMBED, json={"inputs": ["x" * 101]})["code"] == "text_too_long"
        assert small.refused(EMBED, json={"inputs": ["cat " * 24] * 5})["code"] == "too_many_tokens"
        assert small.ask("tiny", "embed", inputs=["cat"])


def test_a_megabyte_of_one_word(live: Any) -> None:
    error = live.refused(EMBED, json={"inputs": ["x" * 2**20]})
    assert (error["status"], error["field"]) == (413, "inputs.0")


def test_a_bad_item_fails_alone(live: Any) -> None:
    answer = live.ask("tiny", "fill", inputs=["the [MASK]", "no mask", "a [MASK] b"])
    good, bad, other = answer["results"]
    assert good["masks"] and other["masks"] and answer["failed"] == 1
    assert bad["error"]["status"] == 422 and "no [MASK]" in bad["error"]["message"]
    assert bad["error"]["field"] == "inputs.1" and "put [MASK]" in bad["error"]["remedy"]


@pytest.mark.parametrize(
    ("model", "verb", "body", "said"),
    [
        ("tiny", "fill", {"inputs": ["no mask at all"]}, "no [MASK]"),
        ("tiny", "fill", {"inputs": ["[MASK]"], "top": -3}, "top"),
        ("tiny", "fill", {"inputs": ["[MASK]"], "top": 10**9}, "top"),
        ("tiny", "fill", {"inputs": [["a", "b", "c [MASK]"]]}, "no pair"),
        ("tiny", "search", {"inputs": ["a"], "top": 0}, "top"),
        ("tiny", "attention", {"inputs": ["cat " * 200]}, "at most 128"),
        ("tiny", "attention", {"inputs": ["cat"], "heads": [9]}, "no head 9"),
        ("en-zh", "translate", {"inputs": ["a"], "n_best": 9}, "9 best of a beam of 5"),
        ("en-zh", "translate", {"inputs": ["a"], "max_length": 1000}, "at most"),
        ("en-zh", "score", {"inputs": [["a"]]}, "no pair"),
        ("en-zh", "attention", {"inputs": [["a"]]}, "no pair"),
        ("en-zh", "score", {"inputs": ["a text alone"]}, "give [source, translation]"),
        ("en-zh", "attention", {"inputs": [["a", "b"]], "layers": [9]}, "no layer 9"),
        ("answer", "answer", {"inputs": ["just a text"]}, "not understood"),
        ("choose", "choose", {"inputs": [{"context": "a", "choices": ["b"]}]}, "not understood"),
        ("classify", "classify", {"inputs": [{"body": "a"}]}, "text"),
        ("classify", "classify", {"inputs": [{"text": {"deep": "er"}}]}, "inputs.0"),
    ],
)
def test_what_a_verb_cannot_do(live: Any, model: str, verb: str, body: dict[str, Any], said: str) -> None:
    error = live.refused(f"/v1/models/{model}/{verb}", json=body)
    assert error["status"] == 422
    assert said in f"{error.get('field')} {error['message']} {error.get('remedy')}"


def test_no_error_tells_a_path(live: Any, tiny_folder: Any) -> None:
    for body in ({"inputs": [7]}, {"inputs": ["a"], "layers": [99]}, {"inputs": ["a"], "max_length": 1000}):
        assert str(tiny_folder.parent) not in live.http.post(EMBED, json=body).text


def test_the_key_is_needed_where_there_is_one(start: Any, tiny_folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_SERVE_API_KEY", "sésame")
    with start((str(tiny_folder),)) as closed:
        assert closed.refused(EMBED, json={"inputs": ["a"]})["status"] == 401
        wrong = {"authorization": "Bearer wrong"}
        assert closed.http.post(EMBED, json={"inputs": ["a"]}, headers=wrong).headers["www-authenticate"] == "Bearer"
        for right in ({"authorization": "Bearer s\u00e9same"}, {"x-api-key": "s\u00e9same"}):
            sent = {name: value.encode() for name, value in right.items()}
            assert closed.http.post(EMBED, json={"inputs": ["a"]}, headers=sent).status_code == 200
        statuses = {path: closed.http.get(path).status_code for path in ("/health", "/ready", "/info", "/metrics")}
        assert statuses == {"/health": 200, "/ready": 200, "/info": 401, "/metrics": 401}


@pytest.mark.parametrize("path", [EMBED, "/v1/models/nobody/embed"])
def test_who_sends_far_too_much_and_then_listens_is_told(live: Any, path: str) -> None:
    with closing(HTTPConnection(urlsplit(live.url).netloc, timeout=60)) as connection:
        connection.request("POST", path, b" " * 20_000_000, {**JSON, "connection": "close"})
        assert connection.getresponse().status == (413 if path == EMBED else 404)


def test_a_deadline_that_cannot_be_kept(live: Any) -> None:
    text = "cat " * 400
    answer = live.http.post("/v1/models/tiny/score", json={"inputs": [text] * 2, "timeout_ms": 1})
    assert answer.status_code == 408 and answer.json()["error"]["code"] == "too_late"
    assert not live.running.server.service.batcher.queue.waiting
