"""`heedful finetune embed` from pairs, scores and lines to a folder of sentence vectors, here and elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from transformers import AutoModel

import heedful
from heedful.cli.main import cli
from heedful.errors import HeedfulError
from heedful.inference.load import predictor

TEXTS = ["the cat", "dog sees love", "中国 苹果", "unaffordable dogs", "", "a b c " * 100]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def command(*arguments: object) -> str:
    done = invoke(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs that share a letter, the same as triplets, scored pairs, and lines."""
    folder, letters = tmp_path_factory.mktemp("embed"), "abcdefghijklmnop"
    pairs = [(f"{letter} cat {letter}", f"the {letter}") for letter in letters]
    scored = [(f"the {a} dog", f"{b} sees", 5 if a == b else 0) for a in letters[:6] for b in letters[:6]]
    for name, header, rows in (
        ("pairs.tsv", ("anchor", "positive"), pairs),
        ("triplets.tsv", ("anchor", "positive", "negative"), [(*pair, "un un") for pair in pairs]),
        ("sts.tsv", ("sentence1", "sentence2", "score"), scored),
    ):
        lines = ["\t".join(map(str, row)) for row in (header, *rows)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "lines.txt").write_text("\n".join(text for pair in pairs for text in pair) + "\n", encoding="utf-8")
    return folder


RECIPE = ("--lr", "2e-3", "--batch-size", 16, "--max-length", 32)


@pytest.fixture(scope="module")
def run(data: Path, tiny_folder: Path) -> Path:
    files = ("--train", data / "triplets.tsv", "--dev", data / "pairs.tsv", "-o", data / "run")
    command(
        "finetune", "embed", "--model", tiny_folder, *files, *RECIPE, "--epochs", 40, "--dropout", 0, "--accumulate", 3
    )
    return data / "run"


def test_a_run_is_judged_by_finding_pairs_and_evaluates_the_same(run: Path, data: Path) -> None:
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    assert set(scores) == {"mrr", "recall@1", "recall@5", "recall@10", "alignment", "uniformity"}
    report = json.loads(command("evaluate", run, data / "pairs.tsv", "--json", "--rounds", 20))
    assert report["scores"] == pytest.approx(scores, abs=1e-4)
    low, high = report["intervals"]["mrr"]
    assert low < report["scores"]["mrr"] < high
    sts = json.loads(command("evaluate", run, data / "sts.tsv", "--json", "--rounds", 0))["scores"]
    assert {"spearman", "pearson"} < set(sts)


def test_the_trained_model_is_better_than_the_one_it_started_from(run: Path, data: Path, tiny_folder: Path) -> None:
    def found(folder: Path) -> float:
        rows = [line.split("\t") for line in (data / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]]
        embedder = heedful.load(folder)
        one, two = (np.asarray(embedder.embed(texts, normalize=True)) for texts in zip(*rows, strict=True))
        return float(((one @ two.T).argmax(1) == np.arange(len(rows))).mean())

    assert found(run) > found(tiny_folder) + 0.2


def test_vectors_are_the_same_in_sentence_transformers(run: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs the extra bench")
    theirs = sentence_transformers.SentenceTransformer(str(run / "model"), device="cpu", local_files_only=True)
    assert theirs.max_seq_length == 32
    with pytest.warns(UserWarning, match="longer than 32 tokens"):
        ours = np.asarray(heedful.load(run).embed(TEXTS))
    np.testing.assert_allclose(ours, theirs.encode(TEXTS), atol=1e-5)


def test_the_encoder_loads_in_transformers(run: Path) -> None:
    _, info = AutoModel.from_pretrained(run / "model", output_loading_info=True)
    assert all(key.startswith("pooler.") for key in info["missing_keys"]) and not info["unexpected_keys"]
    config = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertModel"]


def test_predictions_are_cosines_of_pairs_and_vectors_of_texts(run: Path, data: Path, tmp_path: Path) -> None:
    one, embedder = predictor(run), heedful.load(run)
    (pair,), (text,) = one.predict([("the cat", "a dog")]), one.predict(["the cat"])
    assert pair["similarity"] == pytest.approx(float(embedder.similarity(["the cat", "a dog"])[0, 1]), abs=1e-5)
    np.testing.assert_allclose(text["vector"], np.asarray(embedder.embed(["the cat"]))[0], atol=1e-5)
    command("predict", run, data / "sts.tsv", "-o", tmp_path / "answers.tsv")
    header = (tmp_path / "answers.tsv").read_text(encoding="utf-8").splitlines()[0]
    assert header.split("\t") == ["sentence1", "sentence2", "score", "similarity"]


@pytest.mark.parametrize(("train", "learns"), [("lines.txt", "lines"), ("sts.tsv", "scored")])
def test_lines_and_scores_train_too(train: str, learns: str, data: Path, tiny_folder: Path, tmp_path: Path) -> None:
    files = ("--train", data / train, "--dev", data / "sts.tsv", "-o", tmp_path / "run")
    more = ("--set", "temperature=0.1", "--pooling", "cls", "--seeds", 2)
    command("finetune", "embed", "--model", tiny_folder, *files, *RECIPE, *more, "--epochs", 2)
    task = json.loads((tmp_path / "run/model/task.json").read_text(encoding="utf-8"))
    assert (task["learns"], task["temperature"], task["pooling"]) == (learns, 0.1, "cls")
    assert heedful.load(tmp_path / "run").folder.sentence.pooling == "cls"  # type: ignore[union-attr]
    seeds = json.loads((tmp_path / "run/seeds.json").read_text(encoding="utf-8"))
    assert seeds["decides"] == "spearman" and len(seeds["runs"]) == 2


def test_lines_are_learned_from_by_dropout_even_where_a_model_has_none(
    data: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_folder, tmp_path / "dry")
    config = json.loads((tiny_folder / "config.json").read_text(encoding="utf-8"))
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "dry" / "config.json").write_text(json.dumps({**config, **none}), encoding="utf-8")
    given = ("finetune", "embed", "--model", tmp_path / "dry", *RECIPE, "--epochs", 1, "--train")
    done = invoke(*given, data / "lines.txt", "-o", tmp_path / "run")
    assert done.exit_code == 0 and "dropout 0.1: the model has none" in done.stderr, done.output
    assert "\ndropout = 0.1\n" in (tmp_path / "run" / "config.toml").read_text(encoding="utf-8")
    command("finetune", "--resume", "-o", tmp_path / "run")
    command(*given, data / "pairs.tsv", "-o", tmp_path / "pairs")
    assert "\ndropout" not in (tmp_path / "pairs" / "config.toml").read_text(encoding="utf-8")
    refused = invoke(*given, data / "lines.txt", "-o", tmp_path / "never", "--dropout", 0)
    assert "the same vector twice" in str(refused.exception)
    files = ("--model", tiny_folder, "--train", data / "pairs.tsv", "-o", tmp_path / "never")
    alone = invoke("finetune", "embed", *files, "--batch-size", 1)
    assert "in a batch of one" in str(alone.exception) and not (tmp_path / "never").exists()


def test_a_sweep_chooses_by_what_the_dev_data_tells(data: Path, tiny_folder: Path, tmp_path: Path) -> None:
    files = ("--train", data / "pairs.tsv", "--dev", data / "pairs.tsv", "-o", tmp_path / "run")
    command("finetune", "embed", "--model", tiny_folder, *files, *RECIPE, "--epochs", 1, "--sweep", "pooling=mean,cls")
    assert json.loads((tmp_path / "run/sweep.json").read_text(encoding="utf-8"))["decides"] == "mrr"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["anchor\tpositive", "a\ta"], "same text again"),
        (["text\tpair\tscore", "a\tb\t3", "a\tc\t900"], "out of range"),
    ],
)
def test_bad_data_is_refused_before_anything_is_written(
    lines: list[str], said: str, tiny_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = ("--train", tmp_path / "a.tsv", "-o", tmp_path / "run")
    done = invoke("finetune", "embed", "--model", tiny_folder, *files)
    assert isinstance(done.exception, HeedfulError) and said in str(done.exception)
    assert not (tmp_path / "run" / "model").exists()
