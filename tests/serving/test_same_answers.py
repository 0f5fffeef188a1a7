"""Every verb gives the same answer from the command line, from Python and over HTTP."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import heedful
from heedful.cli.main import cli
from heedful.client import Client
from heedful.inference.embedder import Embedder
from heedful.inference.pseudo_perplexity import score_texts
from heedful.inference.search import Index
from heedful.json_files import finite

TEXTS = ["the cat sees the dog", "", "我爱北京，love!", "unaffordable " * 9]


def command(*arguments: object, given: str | None = None) -> str:
    result = CliRunner().invoke(cli, [str(one) for one in arguments], input=given)
    assert result.exit_code == 0, result.output
    return result.stdout


def same(*answers: Any) -> None:
    """Equal in shape and words, and in numbers to the last digits that different batches may change."""
    first, *others = (json.loads(json.dumps(finite(answer))) for answer in answers)
    for other in others:
        _compare(first, other)


def _compare(a: Any, b: Any) -> None:
    if isinstance(a, dict):
        assert isinstance(b, dict) and list(a) == list(b)
        for key in a:
            _compare(a[key], b[key])
    elif isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            _compare(one, other)
    elif isinstance(a, float):
        assert b == pytest.approx(a, rel=2e-4, abs=2e-5)
    else:
        assert a == b


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return path


@pytest.mark.parametrize("unit", ["sentence", "word", "token"])
@pytest.mark.parametrize("layers", [[-1], [0, 2]])
def test_embed(live: Any, tiny: Embedder, tiny_folder: Path, lines: Path, unit: str, layers: list[int]) -> None:
    pooling = "max" if len(layers) == 1 else "weighted-mean"
    how = {"unit": unit, "layers": layers, "normalize": unit == "word", "pooling": pooling}
    over_http = live.ask("tiny", "embed", inputs=TEXTS, **how)["results"]
    python = tiny.embed(TEXTS, **how)  # type: ignore[arg-type]
    output = lines.with_suffix(".safetensors" if unit != "sentence" else ".npy")
    options = ["--unit", unit, "--layers", ",".join(map(str, layers)), "--pooling", pooling]
    command("embed", tiny_folder, lines, "-o", output, *options, *(["--normalize"] if unit == "word" else []))
    for ours, theirs in zip(over_http, python, strict=True):
        np.testing.assert_allclose(np.array(ours, np.float32).reshape(theirs.shape), theirs, atol=2e-6)
    if unit == "sentence":
        np.testing.assert_allclose(np.load(output), np.array(over_http), atol=2e-6)


def test_similarity(live: Any, tiny: Embedder, tiny_folder: Path) -> None:
    matrix = json.loads(command("similarity", tiny_folder, *TEXTS, "--json"))["cosine"]
    same(matrix, tiny.similarity(TEXTS).tolist(), live.ask("tiny", "similarity", inputs=TEXTS)["results"])


def test_search(live: Any, start: Any, tiny: Embedder, tiny_folder: Path, lines_file: Path, tmp_path: Path) -> None:
    lines = [line for line in lines_file.read_text(encoding="utf-8").splitlines() if line]
    cosines = tiny.similarity([*lines, "love"])[-1, :-1]
    queries = ["love", "the dog"]
    over_http = [one["lines"] for one in live.ask("tiny", "search", inputs=queries, top=3)["results"]]
    assert [one["text"] for one in over_http[0]] == [lines[i] for i in np.argsort(-cosines, kind="stable")[:3]]
    assert over_http[0][0] == {"line": 3, "text": "love", "cosine": pytest.approx(1.0, abs=1e-5)}
    index = tmp_path / "index"
    printed = command("search", index, *queries, "--model", tiny_folder, "--add", lines_file, "--top", 3, "--json")
    hits = [json.loads(line)["hits"] for line in printed.splitlines()]
    same(
        [[(hit["line"], hit["text"], hit["cosine"]) for hit in some] for some in hits],
        [[(hit["line"], hit["text"], hit["cosine"]) for hit in some] for some in over_http],
        [[(hit.line, hit.text, hit.cosine) for hit in some] for some in Index.open(index).search(queries, 3)],
    )
    with start((str(tiny_folder),), search=(f"tiny={index}",)) as other:
        found = [one["lines"] for one in other.ask("tiny", "search", inputs=queries, top=3)["results"]]
        assert {hit.pop("source") for some in found for hit in some} == {"lines.txt"}
        same(found, over_http)
        error = other.refused("/v1/models/tiny/search", json={"inputs": [" "]})
        assert error["message"] == "the query is blank"


def test_fill(live: Any, tiny: Embedder, tiny_folder: Path) -> None:
    text, pair = "the [MASK] sees", "a [MASK]"
    printed = json.loads(command("fill", tiny_folder, text, "--pair", pair, "--top", 3, "--json"))["masks"]
    over_http = live.ask("tiny", "fill", inputs=[[text, pair], text], top=3)["results"]
    python = [
        {"position": one.position, "guesses": [vars(guess) for guess in one.guesses]}
        for one in tiny.fill(text, 3, pair)
    ]
    same(printed, over_http[0]["masks"], python)
    assert len(over_http[1]["masks"]) == 1


def test_score(live: Any, tiny: Embedder, tiny_folder: Path, lines: Path) -> None:
    printed = [json.loads(line) for line in command("score", tiny_folder, lines, "--json").splitlines()][:-1]
    for number, line in enumerate(printed, start=1):
        assert line.pop("line") == number
    python = [score.perplexity for score in score_texts(tiny.masked_lm, TEXTS, tiny.limit(None))]
    over_http = live.ask("tiny", "score", inputs=TEXTS)["results"]
    same(printed, over_http)
    same(python, [one["pseudo_perplexity"] for one in over_http])


INPUTS: dict[str, list[Any]] = {
    "classify": ["the cat", "", ["a dog", "love"], {"text": "unaffordable"}],
    "multilabel": ["the cat", ""],
    "regress": [["the cat", "a dog"], ["我爱", "北京"]],
    "tag": ["the cat sees 北京", "", ["the", "dog"]],
    "answer": [{"question": "who", "context": "the cat sees the dog " * 12}, ["我爱", "北京"]],
    "choose": [{"context": "the cat", "choices": ["sees", "love", "dog"]}, {"question": "who", "choices": ["a", "b"]}],
}


@pytest.mark.parametrize("task", INPUTS)
def test_predictions(live: Any, task_folders: dict[str, Path], task: str, tmp_path: Path) -> None:
    inputs = [one for one in INPUTS[task] if task != "classify" or not isinstance(one, list)]
    model = heedful.load(task_folders[task])
    python = model.predict(inputs)
    verb = "classify" if task == "multilabel" else task
    over_http = live.ask(task, verb, inputs=inputs)["results"]
    same(python, over_http, live.ask(task, "predict", inputs=inputs)["results"])
    if task == "classify":
        same(
            live.ask(task, task, inputs=["the cat"])["results"][0],
            json.loads(command("predict", task_folders[task], "the cat")),
        )
    if task == "answer":
        printed = command("predict", task_folders[task], inputs[1][0], "--context", inputs[1][1])
        same(over_http[1], json.loads(printed))
    if task == "regress":
        printed = command("predict", task_folders[task], inputs[0][0], "--pair", inputs[0][1])
        same(over_http[0], json.loads(printed))


def test_prompts_by_name(start: Any, tiny_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "e5"
    shutil.copytree(tiny_folder, folder)
    pooling = {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling").mkdir()
    for name, value in {
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
        "1_Pooling/config.json": pooling,
        "config_sentence_transformers.json": {"prompts": {"query": "love "}},
    }.items():
        (folder / name).write_text(json.dumps(value))
    model = heedful.load(folder)
    texts = ["the cat", "a dog"]
    expected = model.embed(["love the cat", "love a dog"])
    np.testing.assert_allclose(model.embed(texts, prompt="query"), expected, atol=2e-6)
    cosines = model.similarity(["love the cat", "love a dog"]).tolist()
    printed = json.loads(command("similarity", folder, *texts, "--prompt", "query", "--json"))["cosine"]
    with start((str(folder),)) as live:
        np.testing.assert_allclose(
            live.ask("e5", "embed", inputs=texts, prompt="query")["results"], expected, atol=2e-6
        )
        same(cosines, printed, live.ask("e5", "similarity", inputs=texts, prompt="query")["results"])
        error = live.refused("/v1/models/e5/embed", json={"inputs": texts, "prompt": "nothing"})
        assert "query" in error["remedy"]


def test_translate(live: Any, tiny_translators: dict[str, Path], lines: Path) -> None:
    folder = tiny_translators["transformer"]
    model = heedful.load(folder)
    over_http = live.ask("en-zh", "translate", inputs=TEXTS, beam=3)["results"]
    printed = command("translate", "run", folder, lines, "--beam", 3).splitlines()
    texts = [one["translations"][0]["text"] for one in over_http]
    same(texts, model.translate(TEXTS, beam=3), printed)


def test_alignments_and_pair_scores(live: Any, tiny_translators: dict[str, Path]) -> None:
    model = heedful.load(tiny_translators["transformer"])
    text = "the cat"
    (found,) = live.ask("en-zh", "translate", inputs=[text], alignments=True, n_best=2)["results"]
    assert len(found["translations"]) == 2
    (aligned,) = model.alignments([text])
    same(found["alignment"]["weights"], aligned.weights.tolist())
    assert found["alignment"]["source"] == aligned.source
    pairs = [[text, "我爱"], ["a dog", ""]]
    scores = [one["log_probability"] for one in live.ask("en-zh", "score", inputs=pairs)["results"]]
    same(scores, model.score([tuple(pair) for pair in pairs]))


def test_generate(start: Any, gpt_folder: Path) -> None:
    how: dict[str, Any] = {"max_tokens": 6, "beam": 2}
    printed = command("generate", gpt_folder, "the cat", "--max-tokens", 6, "--beam", 2, "--json")
    said = json.loads(printed)["text"]
    with start((str(gpt_folder),)) as live, Client(live.url) as client:
        (found,) = live.ask(gpt_folder.name, "generate", inputs=["the cat"], **how)["results"]
        same(found["texts"][0]["text"], client.generate("the cat", **how), said)
    assert heedful.load(gpt_folder).generate("the cat", **how) == said


def test_tokenize(live: Any, tiny: Embedder) -> None:
    (found,) = live.ask("tiny", "tokenize", inputs=[["loves", "北京"]])["results"]
    encoding = tiny.tokenizer.encode("loves", "北京")
    assert found["tokens"] == encoding.tokens == ["[CLS]", "love", "##s", "[SEP]", "北", "京", "[SEP]"]
    assert (found["ids"], found["segments"]) == (encoding.ids, encoding.type_ids)
    assert found["offsets"][2] == [4, 5]


def test_attention(live: Any, tiny: Embedder) -> None:
    texts = ["the cat sees", ("a dog", "北京")]
    over_http = live.ask("tiny", "attention", inputs=["the cat sees", ["a dog", "北京"]])["results"]
    for ours, theirs in zip(over_http, tiny.attention(texts), strict=True):
        assert ours["tokens"] == theirs.tokens and ours["segments"] == theirs.segments
        np.testing.assert_allclose(ours["weights"], theirs.weights, atol=2e-5)
    (part,) = live.ask("tiny", "attention", inputs=["the cat sees"], layers=[2], heads=[3, 0])["results"]
    np.testing.assert_allclose(part["weights"], tiny.attention(texts[:1])[0].weights[1:2][:, [3, 0]], atol=2e-5)


def test_the_three_attentions_of_a_translator(live: Any, tiny_translators: dict[str, Path]) -> None:
    translator, pairs = heedful.load(tiny_translators["transformer"]), [["the cat sees", "love"], ["a dog", ""]]
    over_http = live.ask("en-zh", "attention", inputs=pairs)["results"]
    with Client(live.url, "en-zh") as client:
        by_client = client.attention(pairs)
    theirs = translator.attention(*map(list, zip(*pairs, strict=True)))
    for one, same, maps in zip(over_http, by_client, theirs, strict=True):
        sides = {"encoder": (maps.source, maps.source), "decoder": (maps.written, maps.given)}
        for name, (tokens, at) in {**sides, "cross": (maps.written, maps.source)}.items():
            assert (one[name]["tokens"], one[name]["at"]) == (tokens, at)
            np.testing.assert_allclose(one[name]["weights"], getattr(maps, name), atol=2e-5)
            np.testing.assert_allclose(same[name]["weights"], getattr(maps, name), atol=2e-5)
    (part,) = live.ask("en-zh", "attention", inputs=pairs[:1], layers=[2], heads=[1])["results"]
    np.testing.assert_allclose(part["cross"]["weights"], theirs[0].cross[1:2][:, [1]], atol=2e-5)
