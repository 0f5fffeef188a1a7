"""Clients that others have written, unchanged: OpenAI's, Hugging Face's and bert-as-service's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from bert_serving.client import BertClient
from huggingface_hub import InferenceClient

from heedful.inference.embedder import Embedder

TEXTS = ["the cat sees the dog", "", "我爱北京", "love " * 40]


def close(found: Any, expected: Any) -> None:
    """Equal but for the last digits, which the company in a batch may change."""
    np.testing.assert_allclose(np.asarray(found, np.float32), expected, atol=1e-6, rtol=1e-6)


@pytest.fixture
def unit(tiny: Embedder) -> Any:
    return tiny.embed(TEXTS, normalize=True)


@pytest.mark.parametrize("encoding", [None, "float", "base64"])
def test_openai(live: Any, unit: Any, encoding: str | None) -> None:
    how: dict[str, Any] = {} if encoding is None else {"encoding_format": encoding}
    with openai.OpenAI(base_url=f"{live.url}/v1", api_key="none") as client:
        answer = client.embeddings.create(model="tiny", input=TEXTS, **how)
        vectors = [one.embedding for one in answer.data]
        if encoding == "base64":
            vectors = [np.frombuffer(__import__("base64").b64decode(one), "<f4") for one in vectors]  # type: ignore
        close(vectors, unit)
        assert [one.index for one in answer.data] == [0, 1, 2, 3] and answer.usage.total_tokens > 40
        assert len(client.embeddings.create(model="tiny", input="one").data) == 1
        assert "tiny" in [model.id for model in client.models.list()]


def test_openai_asynchronously_and_refused(live: Any, unit: Any) -> None:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{live.url}/v1", api_key="none", max_retries=0) as client:
            found = await asyncio.gather(*(client.embeddings.create(model="tiny", input=text) for text in TEXTS))
            with pytest.raises(openai.NotFoundError, match="the models are"):
                await client.embeddings.create(model="text-embedding-3-small", input="a")
            with pytest.raises(openai.UnprocessableEntityError, match="32 dimensions"):
                await client.embeddings.create(model="tiny", input="a", dimensions=8)
            with pytest.raises(openai.UnprocessableEntityError):
                await client.embeddings.create(model="tiny", input=[[1, 2, 3]])
            return [one.data[0].embedding for one in found]

    close(asyncio.run(ask()), unit)


def test_hugging_face_client(live: Any, unit: Any, tiny: Embedder) -> None:
    close(InferenceClient(f"{live.url}/embed").feature_extraction(TEXTS[0]), unit[:1])
    raw = InferenceClient(f"{live.url}/embed").feature_extraction(TEXTS[0], normalize=False)
    close(raw, tiny.embed(TEXTS[:1]))
    similar = InferenceClient(f"{live.url}/similarity").sentence_similarity(TEXTS[0], other_sentences=TEXTS[1:])
    close(similar, (unit @ unit.T)[0, 1:])
    labels = InferenceClient(f"{live.url}/predict").text_classification("the cat")
    said = live.ask("classify", "classify", inputs=["the cat"])["results"][0]
    assert labels[0].label == said["label"]
    assert {one.label: one.score for one in labels} == pytest.approx(said["probabilities"])
    close(InferenceClient(live.url).feature_extraction(TEXTS[0]), unit[:1])


def test_requests_of_text_embeddings_inference(live: Any, unit: Any, tiny: Embedder) -> None:
    def post(path: str, **body: Any) -> Any:
        answer = live.http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    close(post("/embed", inputs=TEXTS, truncate=True), unit)
    tokens = post("/embed_all", inputs=TEXTS[0])
    close(tokens[0], tiny.embed(TEXTS[:1], unit="token")[0])
    assert len(post("/predict", inputs=[["the cat", "love"], ["a", "dog"]])) == 2
    assert {one["label"] for one in post("/predict", inputs="the cat")} == {"bad", "good"}
    ranked = post("/rerank", query="love", texts=["the cat", "love", "dog"], return_text=True)
    scores = [one["score"] for one in ranked]
    assert scores == sorted(scores, reverse=True) and {one["text"] for one in ranked} == {"the cat", "love", "dog"}
    values = live.ask("regress", "regress", inputs=[["love", "the cat"], ["love", "love"], ["love", "dog"]])["results"]
    assert {one["index"]: one["score"] for one in ranked} == pytest.approx(
        {number: one["value"] for number, one in enumerate(values)}, abs=1e-5
    )
    (pieces,) = post("/tokenize", inputs="loves")
    assert pieces[1] == {"id": tiny.tokenizer.id_of("love"), "text": "love", "special": False, "start": 0, "stop": 4}
    assert pieces[0]["special"] and len(post("/tokenize", inputs=["loves"], add_special_tokens=False)[0]) == 2
    info = live.http.get("/info").json()
    assert info["model_id"] == "tiny" and info["max_input_length"] == 512 and info["max_client_batch_size"] == 10_000
    for path in ("/embed", "/predict", "/rerank", "/similarity", "/tokenize", "/encode", "/v1/embeddings"):
        assert live.refused(path, json={"inputs": 7})["status"] == 422


# What text-embeddings-inference documents: a request, and the shape of its answer; 0.0 stands for any number.
RECORDED: list[tuple[str, dict[str, Any], Any]] = [
    ("/embed", {"inputs": "What is Deep Learning?", "truncate": True, "normalize": True}, [[0.0] * 32]),
    ("/embed", {"inputs": ["a", "b"], "truncation_direction": "Right", "prompt_name": None}, [[0.0] * 32] * 2),
    ("/embed_all", {"inputs": "love", "truncate": False}, [[[0.0] * 32] * 3]),
    ("/predict", {"inputs": "the cat", "raw_scores": False}, [{"score": 0.0, "label": ""}] * 2),
    ("/predict", {"inputs": [["a"], ["b"]], "truncate": True}, [[{"score": 0.0, "label": ""}] * 2] * 2),
    ("/rerank", {"query": "love", "texts": ["a", "b"], "raw_scores": False}, [{"index": 0, "score": 0.0}] * 2),
    ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b", "c"]}}, [0.0, 0.0]),
    (
        "/tokenize",
        {"inputs": "love", "add_special_tokens": False},
        [[{"id": 0, "text": "", "special": False, "start": 0, "stop": 0}]],
    ),
]


def shape_of(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: shape_of(value) for name, value in answer.items()}
    return [shape_of(one) for one in answer] if isinstance(answer, list) else type(answer)


@pytest.mark.parametrize(("path", "body", "answer"), RECORDED)
def test_documented_requests_of_text_embeddings_inference(
    live: Any, path: str, body: dict[str, Any], answer: Any
) -> None:
    found = live.http.post(path, json=body)
    assert found.status_code == 200, found.text
    assert shape_of(found.json()) == shape_of(answer)


def test_encode_of_bert_as_service(live: Any, tiny: Embedder) -> None:
    answer = live.http.post("/encode", json={"id": 123, "texts": TEXTS, "is_tokenized": False}).json()
    assert (answer["id"], answer["status"]) == (123, 200)
    close(answer["results"], tiny.embed(TEXTS))


@pytest.fixture(scope="module")
def bert_ports(start: Any, tiny_folder: Path) -> Iterator[list[int]]:
    with start((str(tiny_folder),), bert_as_service="0:0") as live:
        yield live.running.zmq.ports


def test_the_unchanged_client_of_bert_as_service(bert_ports: list[int], tiny: Embedder) -> None:
    with BertClient("127.0.0.1", *bert_ports, timeout=30_000) as client:
        assert client.server_config["server_version"] == "1.10.0"
        assert client.server_config["max_seq_len"] == 512
        texts = [text for text in TEXTS if text]
        close(client.encode(texts), tiny.embed(texts))
        vectors, tokens = client.encode(["loves 北京"], show_tokens=True)
        assert tokens == [["[CLS]", "love", "##s", "北", "京", "[SEP]"]]
        close(vectors, tiny.embed(["loves 北京"]))
        close(client.encode([["love", "##s", "北", "京"]], is_tokenized=True), vectors)
        assert "num_waiting_tokens" in client.server_status
        with pytest.raises(KeyError):  # the client knows no errors; it must not wait for ever
            client.encode(["a\0b"])
        close(client.encode(texts), tiny.embed(texts))


def test_many_clients_of_bert_as_service_get_their_own_vectors(bert_ports: list[int], tiny: Embedder) -> None:
    texts = [f"the cat {number} sees" for number in range(20)]
    expected = tiny.embed(texts)
    clients = [BertClient("127.0.0.1", *bert_ports, timeout=30_000) for _ in range(4)]
    for number, text in enumerate(texts):
        clients[number % 4].encode([text], blocking=False)
    for place, client in enumerate(clients):
        found = client.fetch_all(sort=True, concat=True)
        close(found, expected[place::4])
        client.close()
